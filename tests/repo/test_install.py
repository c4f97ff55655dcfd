"""tools/install.py never brings a GPU build of torch unannounced, and the pins are complete."""

import re
import tomllib
from pathlib import Path

import install
import pytest
from packaging.markers import Marker, default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONSTRAINTS = (ROOT / "constraints.txt").read_text()
PINS = {
    canonicalize_name(pin.name): pin
    for line in CONSTRAINTS.splitlines()
    if line and not line.startswith("#")
    for pin in [Requirement(line)]
}
DECLARED = [Requirement(line) for line in PROJECT["dependencies"]] + [
    Requirement(line) for extra in PROJECT["optional-dependencies"].values() for line in extra
]

EVERYTHING = ".[engine,pytest,buildkite,dev]"
CPU_BUILD = {"metadata": {"requires_dist": ["filelock", "sympy>=1.13.3", 'pyyaml; extra == "pyyaml"']}}
GPU_BUILD = {
    "metadata": {
        "requires_dist": [
            "filelock",
            "setuptools>=77.0.3",
            'cuda-bindings<14,>=13.0.3; platform_system == "Linux"',
            'cuda-toolkit[cublas,cudart]==13.0.3; platform_system == "Linux"',
            'nvidia-cudnn-cu13==9.20.0.48; platform_system == "Linux"',
            'triton==3.7.1; platform_system == "Linux"',
            'opt-einsum>=3.3; extra == "opt-einsum"',
        ]
    }
}


def sources(monkeypatch, offers):
    """Let pip's sources offer only some requirements: {(requirement, *options): report entry}."""
    asked = []

    def resolve(requirement, *options):
        asked.append((requirement, *options))
        entry = offers.get((requirement, *options))
        return [entry] if entry else None

    monkeypatch.setattr(install, "resolve", resolve)
    return asked


def test_on_linux_a_cpu_build_is_preferred(monkeypatch):
    asked = sources(monkeypatch, {("torch==2.13.0+cpu",): CPU_BUILD, ("torch==2.13.0",): GPU_BUILD})
    assert install.choose_torch("2.13.0", "Linux", None) == ("torch==2.13.0+cpu", [], [])
    assert asked == [("torch==2.13.0+cpu",)]


def test_without_one_the_default_build_comes_with_the_list_of_what_it_brings(monkeypatch):
    sources(monkeypatch, {("torch==2.13.0",): GPU_BUILD})
    requirement, options, gpu = install.choose_torch("2.13.0", "Linux", None)
    assert (requirement, options) == ("torch==2.13.0", [])
    assert gpu == ["cuda-bindings", "cuda-toolkit", "nvidia-cudnn-cu13", "triton"]


def test_a_default_build_that_is_a_cpu_build_needs_no_notice(monkeypatch):
    sources(monkeypatch, {("torch==2.13.0",): CPU_BUILD})
    assert install.choose_torch("2.13.0", "Linux", None) == ("torch==2.13.0", [], [])


def test_torch_index_is_asked_when_the_configured_sources_have_no_cpu_build(monkeypatch):
    option = ("--index-url", "https://cpu.example/simple")
    asked = sources(monkeypatch, {("torch==2.13.0+cpu", *option): CPU_BUILD, ("torch==2.13.0",): GPU_BUILD})
    assert install.choose_torch("2.13.0", "Linux", option[1]) == ("torch==2.13.0+cpu", list(option), [])
    assert asked == [("torch==2.13.0+cpu",), ("torch==2.13.0+cpu", *option)]


def test_torch_index_is_left_alone_when_the_configured_sources_have_one(monkeypatch):
    asked = sources(monkeypatch, {("torch==2.13.0+cpu",): CPU_BUILD})
    assert install.choose_torch("2.13.0", "Linux", "https://cpu.example") == ("torch==2.13.0+cpu", [], [])
    assert asked == [("torch==2.13.0+cpu",)]


def test_a_gpu_build_from_torch_index_is_announced_too(monkeypatch):
    option = ("--index-url", "https://gpu.example/simple")
    sources(monkeypatch, {("torch==2.13.0", *option): GPU_BUILD})
    requirement, options, gpu = install.choose_torch("2.13.0", "Linux", option[1])
    assert (requirement, options) == ("torch==2.13.0", list(option))
    assert "triton" in gpu


def test_an_index_without_the_version_is_an_error_that_names_it(monkeypatch):
    sources(monkeypatch, {("torch==2.13.0",): GPU_BUILD})
    with pytest.raises(SystemExit, match=r"no torch 2\.13\.0 .* TORCH_INDEX=https://cpu\.example"):
        install.choose_torch("2.13.0", "Linux", "https://cpu.example")


def test_on_macos_the_plain_build_is_the_cpu_build(monkeypatch):
    asked = sources(monkeypatch, {("torch==2.13.0",): GPU_BUILD})
    assert install.choose_torch("2.13.0", "Darwin", None) == ("torch==2.13.0", [], [])
    assert asked == [("torch==2.13.0",)]


@pytest.fixture
def pip_calls(monkeypatch):
    """Record what pip would be told, with the constraints file's text in place of its path."""
    calls = []

    def pip(*arguments):
        if "--constraint" in arguments:
            at = arguments.index("--constraint") + 1
            arguments = (*arguments[:at], Path(arguments[at]).read_text(), *arguments[at + 1 :])
        calls.append(arguments)
        return 0

    monkeypatch.setattr(install, "pip", pip)
    return calls


def test_torch_is_installed_first_pinned_and_constrained(monkeypatch, pip_calls):
    sources(monkeypatch, {("torch==2.13.0+cpu",): CPU_BUILD})
    monkeypatch.setattr(install, "installed", lambda _: None)
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.delenv("TORCH_INDEX", raising=False)
    install.main()
    assert pip_calls == [
        ("install", "--constraint", CONSTRAINTS, "torch==2.13.0+cpu"),
        ("install", "--constraint", CONSTRAINTS, "setuptools"),
        ("install", "--constraint", CONSTRAINTS, "--no-build-isolation", "--editable", EVERYTHING),
    ]


def test_a_gpu_build_is_announced_and_brings_its_own_triton(monkeypatch, pip_calls, capsys):
    sources(monkeypatch, {("torch==2.13.0",): GPU_BUILD})
    monkeypatch.setattr(install, "installed", lambda _: None)
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.delenv("TORCH_INDEX", raising=False)
    install.main()
    told = capsys.readouterr().out
    assert "no CPU build of torch 2.13.0" in told
    assert "nvidia-cudnn-cu13" in told
    assert "TORCH_INDEX" in told
    assert all("triton==" not in call[2] for call in pip_calls)
    assert all("torch==2.13.0" in call[2] for call in pip_calls)


def test_a_torch_that_is_there_is_left_alone(monkeypatch, pip_calls):
    asked = sources(monkeypatch, {})
    monkeypatch.setattr(install, "installed", lambda _: "2.13.0+cpu")
    monkeypatch.setattr("importlib.metadata.requires", lambda _: ["filelock"])
    install.main()
    assert asked == []
    assert [call[-1] for call in pip_calls] == ["setuptools", EVERYTHING]


def test_pip_failing_ends_the_installation(monkeypatch, pip_calls):
    monkeypatch.setattr(install, "installed", lambda _: "2.13.0+cpu")
    monkeypatch.setattr(install, "pip", lambda *_: 1)
    with pytest.raises(SystemExit, match="pip failed"):
        install.main()


def test_every_declared_dependency_is_pinned_inside_its_range():
    for requirement in DECLARED:
        pin = PINS[canonicalize_name(requirement.name)]
        (specifier,) = pin.specifier
        assert specifier.operator == "=="
        assert requirement.specifier.contains(specifier.version), f"{pin} is outside {requirement}"


def test_pins_are_exact_sorted_and_free_of_local_versions_and_places():
    assert len(PINS) > 60
    lines = [line for line in CONSTRAINTS.splitlines() if not line.startswith("#")]
    assert lines == sorted(lines, key=str.lower)
    for name, pin in PINS.items():
        assert re.fullmatch(r"==[0-9][0-9A-Za-z.]*", str(pin.specifier)), name
        assert pin.url is None


def test_everything_that_the_dependencies_require_here_is_pinned():
    """Walk the installed metadata: each requirement that holds on this platform has a pin."""
    from importlib.metadata import PackageNotFoundError, distribution

    missing = {}
    queue = [(requirement, "staticfire") for requirement in DECLARED]
    seen = set()
    while queue:
        requirement, wanted_by = queue.pop()
        name = canonicalize_name(requirement.name)
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        if name not in PINS:
            missing[name] = wanted_by
        if (name, *sorted(requirement.extras)) in seen:
            continue
        seen.add((name, *sorted(requirement.extras)))
        try:
            lines = distribution(name).requires or []
        except PackageNotFoundError:
            continue  # reported by the pin if it has none; an absent optional tool is no fault of the pins
        for line in lines:
            below = Requirement(line)
            extras = [{"extra": extra} for extra in ("", *requirement.extras)]
            if below.marker is None or any(below.marker.evaluate(extra) for extra in extras):
                below.marker = None
                queue.append((below, name))
    assert missing == {}


PLATFORMS = {
    "linux": {"sys_platform": "linux", "platform_system": "Linux"},
    "macos": {"sys_platform": "darwin", "platform_system": "Darwin", "platform_machine": "arm64"},
}


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_extras_resolve_on(platform, python):
    """triton exists for Linux alone; everything else is asked for everywhere, at a version that is pinned there."""
    environment = {**default_environment(), **PLATFORMS[platform], "python_version": python, "extra": ""}

    def holds(marker: Marker | None) -> bool:
        return marker is None or marker.evaluate(environment)

    wanted = {canonicalize_name(requirement.name) for requirement in DECLARED if holds(requirement.marker)}
    pinned = {name for name, pin in PINS.items() if holds(pin.marker)}
    assert wanted <= pinned
    assert ("triton" in wanted) == (platform == "linux")
    assert ("triton" in pinned) == (platform == "linux")


def test_the_metadata_names_the_pythons_that_are_supported():
    assert PROJECT["requires-python"] == ">=3.11"
    for python in ("3.11", "3.12", "3.13"):
        assert f"Programming Language :: Python :: {python}" in PROJECT["classifiers"]
