"""A suite with the pytest plugin's own runner is read as that runner starts engines."""

import contextlib
import shutil
import types
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.plugin import runner
from staticfire.harness.plugin.keywords import SIGNATURE
from staticfire.harness.scan import cache, plugin
from staticfire.harness.scan.base import ScanConfig, Unknown
from staticfire.harness.scan.scan import scan

BY_FIXTURE = "def test_a(vllm_runner):\n    with vllm_runner({}):\n        pass\n"
BY_IMPORT = "from staticfire.harness.plugin.runner import VllmRunner\ndef test_a():\n    VllmRunner({})\n"
VALUES = st.none() | st.booleans() | st.integers(-2, 4096) | st.sampled_from(["auto", "fp8"]) | st.lists(st.integers(0))
OTHERS = ("quantization", "enable_prefix_caching", "tokenizer", "default_torch_num_threads", "hf_overrides")


def sites(folder: Path, **files: str):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text("")  # nothing above it is looked at
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return scan([folder]).sites


def the_site(folder: Path, **files: str):
    (site,) = sites(folder, **files)
    return site


def values(configuration):
    return {name: typed.value for name, typed in configuration.keywords.items()}


def run(model: str, typed):
    """What the engine is started with when the runner runs."""
    asked = []

    def start(model, keywords):
        asked.append((model, dict(keywords)))
        return types.SimpleNamespace(close=lambda: None)

    engine = types.SimpleNamespace(hidden={}, start=start)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "engine_threads", contextlib.nullcontext)
        patch.setattr(runner, "ENGINES", {runner.under_test(): lambda: engine})
        with runner.VllmRunner(model, **typed) as started:
            assert started.typed == asked[0][1]
    return asked


@given(
    typed=st.dictionaries(st.sampled_from([*SIGNATURE, *OTHERS]), VALUES, max_size=6),
    text=st.sampled_from([BY_FIXTURE, BY_IMPORT]),
)
def test_what_is_read_is_what_the_runner_asks_for(tmp_path_factory, typed, text):
    call = ", ".join(['"org/m"', *(f"{name}={value!r}" for name, value in typed.items())])
    site = the_site(tmp_path_factory.mktemp("suite"), test_a=text.format(call))
    (configuration,) = site.configurations
    assert (site.form, configuration.complete, configuration.assumed) == ("vllm_runner", True, ())
    ((model, asked),) = run("org/m", typed)
    assert configuration.model == model
    assert {name: repr(value) for name, value in values(configuration).items()} == {
        k: repr(v) for k, v in asked.items()
    }


def test_a_tokenizer_goes_by_the_suites_name_or_the_engines():
    for typed, expected in (({"tokenizer_name": "org/t"}, "org/t"), ({"tokenizer": "org/t"}, "org/t"), ({}, None)):
        ((_, asked),) = run("org/m", typed)
        assert asked.get("tokenizer") == expected
        assert "tokenizer_name" not in asked


def test_a_default_is_the_wrappers_and_a_typed_value_the_sites(tmp_path):
    text = BY_FIXTURE.format('"org/m", block_size=32,\n        quantization="fp8"')
    keywords = the_site(tmp_path, test_a=text).configurations[0].keywords
    lines = (plugin.FOLDER / "keywords.py").read_text().splitlines()
    for name in set(SIGNATURE) - {"tokenizer_name", "block_size"}:
        where = keywords[name].where
        assert (keywords[name].layer, Path(where.path).name) == ("wrapper", "keywords.py")
        assert lines[where.line - 1].strip().startswith(f"{name}: ")
    for name, line in (("block_size", 2), ("quantization", 3)):
        where = keywords[name].where
        assert (keywords[name].layer, where.path, where.line) == ("call", str(tmp_path / "test_a.py"), line)


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("from staticfire.harness.plugin import runner", "runner.VllmRunner"),
        ("import staticfire.harness.plugin.runner as r", "r.VllmRunner"),
        ("import staticfire.harness.plugin.runner", "staticfire.harness.plugin.runner.VllmRunner"),
        ("from staticfire.harness.plugin.runner import VllmRunner as Engine", "Engine"),
        ("from staticfire.harness.plugin.runner import VllmRunner\nclass Mine(VllmRunner): ...", "Mine"),
    ],
)
def test_the_class_is_read_however_it_is_imported(tmp_path, head, name):
    (configuration,) = the_site(tmp_path, test_a=f'{head}\ndef test_a():\n    {name}("org/m")\n').configurations
    assert [(configuration.model, values(configuration))] == run("org/m", {})


OWN = """
import pytest
from vllm import LLM

class Own:
    def __init__(self, model, seed=7):
        self.llm = LLM(model, seed=seed)

@pytest.fixture
def vllm_runner():
    return Own

"""
CALL = BY_FIXTURE.format('"org/m"')


@pytest.mark.parametrize(
    "files", [{"conftest": OWN, "test_a": CALL}, {"test_a": OWN + CALL}], ids=["conftest", "module"]
)
def test_a_suites_own_runner_wins(tmp_path, files):
    (site,) = (site for site in sites(tmp_path, **files) if site.form == "vllm_runner")
    assert values(site.configurations[0]) == {"seed": 7}


def test_a_fixture_that_changes_the_plugins_gets_the_plugins(tmp_path):
    conftest = """
import functools, pytest

@pytest.fixture
def vllm_runner(vllm_runner):
    return functools.partial(vllm_runner, enable_chunked_prefill=None, seed=3)
"""
    (configuration,) = the_site(tmp_path, conftest=conftest, test_a=CALL).configurations
    assert configuration.complete
    assert [("org/m", values(configuration))] == run("org/m", {"enable_chunked_prefill": None, "seed": 3})


def test_a_fixture_gets_the_next_one_further_out_and_not_itself(tmp_path):
    (tmp_path / "inner").mkdir()
    again = "import functools, pytest\n\n@pytest.fixture\ndef vllm_runner(vllm_runner):\n"
    again += "    return functools.partial(vllm_runner, {})\n"
    (tmp_path / "inner" / "conftest.py").write_text(again.format("seed=1"))
    (tmp_path / "inner" / "test_b.py").write_text(CALL)
    found = sites(
        tmp_path, conftest=OWN.replace("seed=7", "seed=7, dtype='auto'").replace("seed=seed", "seed=seed, dtype=dtype")
    )
    (site,) = (site for site in found if site.form == "vllm_runner")
    assert values(site.configurations[0]) == {"seed": 1, "dtype": "auto"}


@pytest.mark.parametrize("keyword", ["block_size", "num_gpu_blocks_override"])
def test_an_unknown_value_stays_and_one_that_may_be_none_splits(tmp_path, keyword):
    head = "import other\nSIZES, KINDS = {1: 32, 2: None}, {1: 'fp8', 2: 'awq'}\n"
    text = BY_FIXTURE.format(f'"org/m", seed=other.f(), {keyword}=SIZES[other.g()], quantization=KINDS[other.g()]')
    configurations = the_site(tmp_path, test_a=head + text).configurations
    assert [values(one).get(keyword, "absent") for one in configurations] == [32, "absent"]
    for one in configurations:
        assert one.complete
        assert isinstance(one.keywords["seed"].value, Unknown)
        assert one.keywords["quantization"].value.candidates == ("fp8", "awq")


def test_an_unknown_splat_leaves_the_site_open(tmp_path):
    text = "import other\n" + BY_FIXTURE.format('"org/m", seed=1, **other.f()')
    (configuration,) = the_site(tmp_path, test_a=text).configurations
    assert (configuration.complete, configuration.keywords["seed"].value) == (False, 1)
    assert isinstance(configuration.keywords["enable_chunked_prefill"].value, Unknown)


SIZED = OWN.replace("seed=7", "seed=7, block_size=1").replace("seed=seed", "seed=seed, block_size=block_size")


@pytest.mark.parametrize("wrapper", ["", SIZED], ids=["the plugin's", "its own"])
def test_candidates_of_one_call_are_not_those_of_the_next(tmp_path, wrapper):
    text = """
import other
A, B = {1: 16, 2: 32}, {1: 64, 2: 128}
def test_a(vllm_runner):
    vllm_runner("org/a", block_size=A[other.f()])
    vllm_runner("org/b", block_size=B[other.f()])
"""
    files = {"conftest": wrapper} if wrapper else {}
    sizes: dict[object, set[object]] = {}
    for site in sites(tmp_path, test_a=text, **files):
        for one in site.configurations if site.form == "vllm_runner" else ():
            value = one.keywords["block_size"].value
            sizes.setdefault(one.model, set()).update(value.candidates if isinstance(value, Unknown) else [value])
    assert sizes == {"org/a": {16, 32}, "org/b": {64, 128}}


def test_cells_and_drawn_configurations_add_no_site_in_the_plugin(tmp_path):
    text = BY_IMPORT.format('"org/m"') + "    VllmRunner.as_typed('org/n', seed=1)\n"
    text += "def test_b(cell, cell_runner):\n    with cell_runner() as engine:\n        VllmRunner.of_cell(cell)\n"
    assert the_site(tmp_path, test_a=text).where.path == str(tmp_path / "test_a.py")


def test_another_source_of_the_plugin_is_read_anew(tmp_path, monkeypatch):
    copy = shutil.copytree(plugin.FOLDER, tmp_path / "plugin", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(plugin, "ENTRY", copy / "entry.py")
    monkeypatch.setattr(plugin, "_READ", {name: copy / path.name for name, path in plugin._READ.items()})
    suite = tmp_path / "suite"
    config = ScanConfig(cache_dir=tmp_path / "cache")

    def block_size():
        (site,) = scan([suite], config=config).sites
        return site.configurations[0].keywords["block_size"].value

    the_site(suite, test_a=CALL)
    before = cache.own_digest()
    assert block_size() == 16
    text = (copy / "keywords.py").read_text()
    (copy / "keywords.py").write_text(text.replace("block_size: int | None = 16", "block_size: int | None = 64"))
    assert block_size() == 64
    assert cache.own_digest() != before
