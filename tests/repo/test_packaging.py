"""The wheel holds staticfire/ alone and works in an environment of its own, next to a distribution called `kernels`.

Everything is built from a commit of the working tree made in a temporary folder: once from a clone of it, once from
the source distribution. The environments hold the wheel and a stand-in `kernels`; the other dependencies are those of
the running interpreter, reached through a path file, so nothing is downloaded.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("kernels", "engine", "harness", "matrices")
# The names that transformers takes from the package `kernels` once its version suits.
KERNELS_NAMES = [
    "CUDAProperties",
    "Device",
    "KernelizeFallback",
    "LayerRepository",
    "LocalLayerRepository",
    "Mode",
    "ROCMProperties",
    "get_kernel",
    "kernelize",
    "register_kernel_mapping",
    "replace_kernel_forward_from_hub",
    "use_kernel_forward_from_hub",
    "use_kernel_mapping",
    "use_kernelized_func",
]


def run(*command, cwd, **environment):
    """Run a command; its output goes into the failure when it fails."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PYTHON", "MAKE"))}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**env, "PYTHONSAFEPATH": "1", **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def working_files():
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    return [Path(name) for name in listed.split("\0") if name and os.path.lexists(ROOT / name)]


@pytest.fixture(scope="module")
def commit(tmp_path_factory):
    """A repository with one commit: the working tree as it is now, links as links."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs git and a checkout; this is an unpacked source distribution")
    folder = tmp_path_factory.mktemp("origin")
    for name in working_files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.invalid", "-c", "commit.gpgsign=false")
    run("git", "init", "--quiet", cwd=folder)
    run("git", "add", "--all", "--force", cwd=folder)
    run("git", *identity, "commit", "--quiet", "--no-verify", "--message", "all", cwd=folder)
    return folder


def build(kind, source, out):
    run(sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", out, source, cwd=out)
    (made,) = out.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return made


@pytest.fixture(scope="module")
def clone(commit, tmp_path_factory):
    folder = tmp_path_factory.mktemp("clone") / "repo"
    run("git", "clone", "--quiet", commit, folder, cwd=folder.parent)
    return folder


@pytest.fixture(scope="module")
def sdist(clone, tmp_path_factory):
    return build("sdist", clone, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheels(clone, sdist, tmp_path_factory):
    unpacked = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    (source,) = unpacked.iterdir()
    return {
        "sdist": build("wheel", source, tmp_path_factory.mktemp("wheel-of-sdist")),
        "clone": build("wheel", clone, tmp_path_factory.mktemp("wheel-of-clone")),
    }


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def expected_members():
    """What belongs into the wheel, from the tracked files: all Python, all data, no leftovers."""
    members = set()
    for name in working_files():
        if name.parts[0] in FOLDERS:
            members.add("staticfire/" + name.as_posix())
        elif name.parts[:2] == ("src", "staticfire") and len(name.parts) == 3 and not (ROOT / name).is_symlink():
            members.add(name.relative_to("src").as_posix())
    return members


@pytest.mark.parametrize("origin", ["sdist", "clone"])
def test_the_wheel_holds_staticfire_and_nothing_else(wheels, origin):
    names = set(contents(wheels[origin]))
    tops = {name.split("/")[0] for name in names}
    assert {re.sub(r"-[0-9][^/]*\.dist-info", ".dist-info", top) for top in tops} == {
        "staticfire",
        "staticfire.dist-info",
    }
    assert {name for name in names if name.startswith("staticfire/")} == expected_members()


def test_both_ways_give_the_same_wheel(wheels):
    first, second = contents(wheels["sdist"]), contents(wheels["clone"])
    assert {name for name in first.keys() | second.keys() if first.get(name) != second.get(name)} == set()


def test_the_source_distribution_holds_what_a_build_needs(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/staticfire/kernels/__init__.py"} <= names


@pytest.fixture(scope="module", params=["sdist", "clone"])
def environment(request, wheels, tmp_path_factory):
    """The python of a fresh environment with the wheel and a stand-in `kernels` 0.18.5."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    python = folder / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index")
    run(*pip, wheels[request.param], cwd=folder)
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (site / "kernels").mkdir()
    defined = [f"class {name}:\n    def __init__(self, *_, **__): ...\n" for name in KERNELS_NAMES if name[0].isupper()]
    defined += [f"def {name}(*_, **__):\n    return lambda f: f\n" for name in KERNELS_NAMES if name[0].islower()]
    (site / "kernels" / "__init__.py").write_text("\n".join(defined))
    info = site / "kernels-0.18.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kernels\nVersion: 0.18.5\n")
    (info / "top_level.txt").write_text("kernels\n")
    (info / "RECORD").write_text(
        "kernels/__init__.py,,\n"
        + "".join(f"{info.name}/{file},,\n" for file in ("METADATA", "top_level.txt", "RECORD"))
    )
    return python


def test_the_command_and_the_module_start(environment, tmp_path):
    for command in ([environment.parent / "staticfire"], [environment, "-m", "staticfire"]):
        assert "explain" in run(*command, "--help", cwd=tmp_path)
    version = run(environment, "-m", "staticfire", "--version", cwd=tmp_path)
    assert re.search(r"\d+\.\d+\.\d+", version)


def test_the_package_comes_from_the_wheel(environment, tmp_path):
    script = "import staticfire, staticfire.kernels as k; print(staticfire.__file__); print(k.__file__)"
    for line in run(environment, "-c", script, cwd=tmp_path).split():
        assert Path(line).is_relative_to(environment.parent.parent)


def test_resources_load(environment, tmp_path):
    script = """
from importlib.resources import files
data = files("staticfire.matrices")
print((data / "hybrid.toml").read_text(encoding="utf-8")[:1])
print((data / "devices.toml").read_text(encoding="utf-8")[:1])
print(len([entry for entry in (data / "models").iterdir() if entry.name.endswith(".json")]))
"""
    assert int(run(environment, "-c", script, cwd=tmp_path).split()[-1]) == len(
        list(ROOT.glob("matrices/models/*.json"))
    )


def test_the_light_verbs_work(environment, tmp_path):
    assert "jamba-tiny" in run(environment, "-m", "staticfire", "matrix", "hybrid", cwd=tmp_path)
    assert "block_size" in run(environment, "-m", "staticfire", "explain", "jamba-tiny", cwd=tmp_path)


@pytest.mark.engine
def test_transformers_finds_the_other_kernels_from_the_repository_root(environment):
    script = """
import transformers, kernels, staticfire.kernels
from transformers import JambaForCausalLM
from transformers.utils.import_utils import is_kernels_available
print(is_kernels_available(), kernels.__file__, staticfire.kernels.__file__)
"""
    available, other, ours = run(environment, "-c", script, cwd=ROOT).split()[-3:]
    assert available == "True"
    site = environment.parent.parent
    assert Path(other).is_relative_to(site)
    assert Path(ours).is_relative_to(site)
    assert Path(ours).parent.parent.name == "staticfire"


@pytest.mark.engine
def test_without_the_safe_path_the_folder_would_be_taken_for_it(environment):
    """Why PYTHONSAFEPATH is set everywhere: the fault that the test above guards against is real."""
    done = subprocess.run(
        [environment, "-c", "import transformers.integrations.hub_kernels"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode != 0
    assert f"cannot import name 'CUDAProperties' from 'kernels' ({ROOT / 'kernels' / '__init__.py'})" in done.stderr
