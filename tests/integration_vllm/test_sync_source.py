"""The audit of source, on the sources of real releases: which values that are settled at run time never travel."""

import json
import shutil
from pathlib import Path

import jsonschema
import pytest

from staticfire.harness.cli import main
from staticfire.harness.sync.source.audit import audit

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(900)]

FIELD = "cache_config.mamba_block_size"


@pytest.fixture(scope="session")
def package(interpreters):
    """The folder of a version's package."""

    def find(version):
        found = interpreters[version].with_name(f"vllm-{version}") / "vllm"
        assert (found / "config" / "cache.py").is_file(), found
        return found

    return find


@pytest.fixture
def copied(package, tmp_path):
    """A copy of a version's Python files, their text changed by a function of path and text."""

    def copy(version, change):
        source, target = package(version), tmp_path / "vllm"
        shutil.copytree(source, target, ignore=lambda folder, names: {n for n in names if "__pycache__" in n})
        for path in target.rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            changed = change(path.relative_to(target).as_posix(), text)
            if changed != text:
                path.write_text(changed, encoding="utf-8")
        return target

    return copy


@pytest.fixture
def checkout(package, tmp_path):
    """A version's whole repository: the package, with the tests, examples and benchmarks of its source beside it."""

    def build(version):
        root = package(version)
        beside = root.parents[1] / f"source-{version}"
        if not beside.is_dir():
            pytest.skip(f"the tests of {version} are not unpacked beside the package")
        for folder in (root, *beside.iterdir()):
            if folder.is_dir():
                shutil.copytree(folder, tmp_path / "clone" / folder.name, ignore=_no_python)
        return tmp_path / "clone"

    return build


def _no_python(folder, names):
    return {name for name in names if not (Path(folder, name).is_dir() or name.endswith(".py"))} | {"__pycache__"}


def text_at(place):
    path, _, line = str(place).rpartition(":")
    return Path(path).read_text(encoding="utf-8").split("\n")[int(line) - 1]


@pytest.mark.parametrize("version", ["0.27.1", "0.28.0"])
def test_the_founding_fault_is_named_with_write_read_and_missing_carrier(package, version):
    found = {finding.field: finding for finding in audit(package(version)).findings}
    finding = found[FIELD]
    assert "cache_config.mamba_block_size = " in text_at(finding.write)
    assert "self.__dict__" in text_at(finding.read)
    assert (finding.process, finding.carried_by, finding.applied) == ("worker", None, None)
    assert "EngineCoreReadyResponse" in finding.reason
    assert len(found) <= 20
    assert not {"cache_config.block_size", "cache_config.num_gpu_blocks", "model_config.max_model_len"} & found.keys()


@pytest.mark.parametrize("version", ["0.27.1", "0.28.0", "0.33.0"])
def test_in_a_whole_checkout_tests_and_scripts_are_no_product(package, checkout, version):
    clone, root = checkout(version), package(version)
    alone, whole = audit(root), audit(clone)

    def said(report, base):
        return [
            (finding.field, Path(finding.write.path).relative_to(base), finding.write.line)
            for finding in (*report.findings, *report.partly)
        ]

    assert said(whole, clone / "vllm") == said(alone, root)
    assert (whole.coverage.files, whole.coverage.writes) == (alone.coverage.files, alone.coverage.writes)
    left = {left.kind: left for left in whole.coverage.left}
    assert "tests" in left["tests"].where
    assert {"benchmarks", "examples"} <= {*left["scripts"].where}
    assert left["tests"].files > 1000


def test_renamed_it_is_still_found(copied):
    root = copied("0.27.1", lambda path, text: text.replace("mamba_block_size", "some_other_name"))
    assert "cache_config.some_other_name" in {finding.field for finding in audit(root).findings}


RESPONSE = {
    "v1/engine/__init__.py": ("    block_size: int\n", "    mamba_block_size: int | None\n"),
    "v1/engine/core.py": (
        "block_size=self.vllm_config.cache_config.block_size,",
        " mamba_block_size=self.vllm_config.cache_config.mamba_block_size,",
    ),
    "v1/engine/core_client.py": (
        "cache_config.block_size = response.block_size",
        "; cache_config.mamba_block_size = response.mamba_block_size",
    ),
}
"""File -> text, and what is put after it: the field in the response, filled in, and taken over."""
SETTLED = (
    "vllm_config.cache_config.num_gpu_blocks = scheduler_kv_cache_config.num_blocks",
    "; vllm_config.cache_config.mamba_block_size = vllm_config.cache_config.block_size",
)


def put(text, old, new):
    assert old in text, old
    return text.replace(old, old + new, 1)


def test_sent_and_applied_it_is_no_finding_and_the_executors_that_have_copies_are_named(copied):
    root = copied("0.27.1", lambda path, text: put(text, *RESPONSE[path]) if path in RESPONSE else text)
    report = audit(root)
    assert FIELD not in {finding.field for finding in report.findings}
    (partly,) = report.partly
    assert (partly.field, partly.carried_by) == (FIELD, "EngineCoreReadyResponse")
    assert partly.applied is not None
    # By reading: one executor aligns the engine core's own configuration, another inherits it; three start processes.
    assert partly.sharing is not None
    together, apart = ({site.name: site.place for site in sites} for sites in partly.sharing)
    assert together.keys() == {"UniProcExecutor", "ExecutorWithExternalLauncher"}
    assert "class UniProcExecutor" in text_at(together["UniProcExecutor"])
    assert apart.keys() == {
        "WorkerProc.make_worker_process",
        "RayDistributedExecutor._init_workers_ray",
        "RayExecutorV2._init_executor",
    }
    assert "context.Process(" in text_at(apart["WorkerProc.make_worker_process"])


def test_sent_applied_and_settled_by_the_core_it_is_gone(copied):
    def change(path, text):
        text = put(text, *RESPONSE[path]) if path in RESPONSE else text
        return put(text, *SETTLED) if path == "v1/engine/core.py" else text

    report = audit(copied("0.27.1", change))
    assert FIELD not in {finding.field for finding in (*report.findings, *report.partly)}


def test_the_report_on_the_newest_is_short_and_says_how_it_is_carried_from_a_copy(package, capsys, repo_root):
    assert main(["sync", str(package("0.33.0")), "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, json.loads((repo_root / "docs/schemas/sync-source.json").read_text(encoding="utf-8")))
    found = {finding["field"]: finding for finding in document["findings"]}
    # Each was judged by reading the source; see docs/sync.md.
    assert found.keys() == {
        "cache_config.cache_dtype",
        "cache_config.cache_hit_alignment_tokens",
        "cache_config.enable_prefix_caching",
        "cache_config.hash_block_size",
        "cache_config.kv_cache_layout",
        "cache_config.kv_cache_memory_bytes",
        "cache_config.mamba_page_size_padded",
        "cache_config.simple_cpu_offload_num_blocks",
        "cache_config.skip_page_size_padded",
        "cache_config.sliding_window",
        "compilation_config.compilation_time",
        "compilation_config.cudagraph_capture_sizes",
        "compilation_config.cudagraph_mode",
        "compilation_config.encoder_compilation_time",
        "model_config.hf_config",
        "model_config.model_arch_config",
    }
    (partly,) = document["partly_carried"]
    assert (partly["field"], partly["carried_by"]) == (FIELD, "EngineCoreReadyResponse")
    assert "which worker processes do not write" in partly["reason"]
    assert "UniProcExecutor" in {site["name"] for site in partly["carried_under"]}
    assert {site["name"] for site in partly["not_carried_under"]} == {
        "RayExecutorV2._init_executor",
        "WorkerProc.make_worker_process",
    }
    assert document["coverage"]["unread"] == []
    assert document["coverage"]["placed"]["worker"] >= 20
