"""Releases of vLLM asked with names of modules, files and folders, as hostile files could: nothing is touched."""

import json
import re
import shlex
from pathlib import Path

import pytest
import vllm_envs

from staticfire.harness.models import devices
from staticfire.harness.probe.base import Crashed, Outcome, Question
from staticfire.harness.probe.models import ModelSource
from staticfire.harness.probe.vllm.probe import VllmProbe
from staticfire.harness.probe.vllm.process import Limits
from staticfire.harness.probe.vllm.variables import PASSED, why_withheld

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(1800)]

CONNECTOR = {"kv_connector": "Mine", "kv_role": "kv_both"}
HOSTILE: dict[str, dict[str, object]] = {
    "connector": {"kv_transfer_config": {**CONNECTOR, "kv_connector_module_path": "evil_named"}},
    "connector in a package": {"kv_transfer_config": {**CONNECTOR, "kv_connector_module_path": "evil_named.inner"}},
    "encoder connector": {
        "ec_transfer_config": {"ec_connector": "M", "ec_role": "ec_both", "ec_connector_module_path": "evil_named"}
    },
    "offloading": {
        "kv_transfer_config": {
            "kv_connector": "OffloadingConnector",
            "kv_role": "kv_both",
            "kv_connector_extra_config": {"spec_name": "M", "spec_module_path": "evil_named", "cpu_bytes_to_use": 1},
        }
    },
    "scheduler": {"scheduler_cls": "evil_named.Scheduler"},
    "worker": {"worker_cls": "evil_named.Worker"},
    "worker extension": {"worker_extension_cls": "evil_named.Mixin"},
    "executor": {"distributed_executor_backend": "evil_named.Executor"},
    "logits processors": {"logits_processors": ["evil_named:P"]},
    "plugin of outputs": {"io_processor_plugin": "evil_named"},
    "model classes": {"model_class_overrides": {"LlamaForCausalLM": "evil_named:Model"}},
    "reasoning parser": {"reasoning_parser_plugin": "{file}", "reasoning_parser": "evil"},
    "passes": {"compilation_config": {"inductor_passes": {"post_grad_custom_post_pass": "evil_named.function"}}},
    "compiler": {"compilation_config": {"backend": "evil_named.compile", "mode": 1}},
    "folder of caches": {"compilation_config": {"cache_dir": "{folder}", "debug_dump_path": "{folder}"}},
    "folder of profiles": {"profiler_config": {"profiler": "torch", "torch_profiler_dir": "{folder}"}},
    "folder of weights": {"download_dir": "{folder}"},
    "scales": {"mm_encoder_fp8_scale_save_path": "{folder}/scales.json"},
    "code beside a checkpoint": {"trust_remote_code": True, "hf_config_path": "{remote}"},
    "tokenizer with code": {"trust_remote_code": True, "tokenizer": "{remote}", "skip_tokenizer_init": False},
    "map of code": {"trust_remote_code": True, "hf_overrides": {"auto_map": {"AutoConfig": "evil_named.C"}}},
    "draft": {"speculative_config": {"method": "custom_class", "model": "evil_named.P", "num_speculative_tokens": 1}},
}
ARGV = {
    "tools": ["--tool-parser-plugin", "{file}", "--enable-auto-tool-choice", "--tool-call-parser", "evil"],
    "reasoning": ["--reasoning-parser-plugin", "{file}", "--reasoning-parser", "evil"],
    "middleware": ["--middleware", "evil_named.M"],
    "logging": ["--log-config-file", "{logging}"],
    "connector by parts": [
        *("--kv-transfer-config.kv_connector", "M", "--kv-transfer-config.kv_role", "kv_both"),
        *("--kv-transfer-config.kv_connector_module_path", "evil_named"),
    ],
    "file of options": ["--config", "{options}"],
}
IMPORTED = ("connector", "connector in a package", "passes")
"""What vLLM imports while it only makes a configuration, in every release: the control that these names are live."""


class Place:
    """Hostile files, and an interpreter that could import the hostile modules."""

    def __init__(self, folder: Path, wrapper: Path) -> None:
        self.marker, self.folder = folder / "marker", folder / "named"
        mark = f"open({str(self.marker)!r}, 'a').write(__name__ + chr(10))\n"
        package = folder / "packages" / "evil_named"
        package.mkdir(parents=True)
        for path in (package / "__init__.py", package / "inner.py", folder / "plugin.py"):
            path.write_text(mark)
        remote = folder / "remote"
        remote.mkdir()
        (remote / "configuration_evil.py").write_text(mark)
        auto_map = {"AutoConfig": "configuration_evil.C", "AutoTokenizer": "configuration_evil.T"}
        (remote / "config.json").write_text(json.dumps({"model_type": "evil", "auto_map": auto_map}))
        (remote / "tokenizer_config.json").write_text(json.dumps({"auto_map": auto_map}))
        handlers = {"h": {"class": "evil_named.Handler"}}
        (folder / "logging.json").write_text(json.dumps({"version": 1, "handlers": handlers}))
        (folder / "options.yaml").write_text("scheduler-cls: evil_named.S\nmiddleware: evil_named.M\n")
        names = {"file": "plugin.py", "remote": "remote", "logging": "logging.json", "options": "options.yaml"}
        self.words = {name: str(folder / path) for name, path in names.items()} | {"folder": str(self.folder)}
        assignment, _, command = wrapper.read_text().splitlines()[1].partition(" exec ")
        name, _, value = assignment.partition("=")
        self.python = folder / "python"
        self.python.write_text(f"#!/bin/sh\n{name}={value}:{shlex.quote(str(package.parent))} exec {command}\n")
        self.python.chmod(0o755)

    def filled(self, value):
        match value:
            case str():
                return re.sub(r"\{(\w+)\}", lambda found: self.words[found[1]], value)
            case dict():
                return {key: self.filled(item) for key, item in value.items()}
            case list():
                return [self.filled(item) for item in value]
        return value


@pytest.fixture(scope="module", params=vllm_envs.VERSIONS)
def place(request, interpreters, tmp_path_factory):
    return Place(tmp_path_factory.mktemp("hostile"), interpreters[request.param])


@pytest.fixture(scope="module")
def said(place) -> dict[str, Outcome]:
    """Every hostile question, answered by one process."""
    model = ModelSource().find("llama-3.1-8b")
    assert model is not None
    questions = {
        **{name: Question(str(model.path), place.filled(typed)) for name, typed in HOSTILE.items()},
        **{name: Question(str(model.path), {}, "serve", tuple(place.filled(argv))) for name, argv in ARGV.items()},
        "model with code": Question(place.words["remote"], {"trust_remote_code": True}),
        "variables": Question(
            str(model.path),
            environment=dict.fromkeys(
                ("VLLM_CACHE_ROOT", "VLLM_CONFIG_ROOT", "VLLM_DEBUG_DUMP_PATH", "VLLM_RPC_BASE_PATH", "HF_HOME"),
                str(place.folder),
            )
            | {"VLLM_PLUGINS": "evil_named", "VLLM_USE_MODELSCOPE": "1", "VLLM_LOGGING_CONFIG_PATH": "{logging}"},
        ),
    }
    probe = VllmProbe(
        str(place.python),
        devices.find("h100-80gb"),
        use_cache=False,
        processes=1,
        limits=Limits(start=600, question=300),
    )
    try:
        return dict(zip(questions, probe.answer(list(questions.values())), strict=True))
    finally:
        probe.close()


def test_nothing_is_imported_run_or_written(said, place):
    assert not place.marker.exists(), place.marker.read_text()
    assert not place.folder.exists()
    assert len(said) == len(HOSTILE) + len(ARGV) + 2


@pytest.mark.parametrize("name", IMPORTED)
def test_what_would_be_imported_is_said(said, name):
    outcome = said[name]
    assert isinstance(outcome, Crashed), outcome
    assert "it would import evil_named" in outcome.detail


READ = re.compile(r"\b(?:envs\.|environ(?:\.get)?[\[(]\s*\"|getenv\(\")([A-Z][A-Z0-9_]+)")
PLACES = (
    "config", "engine", "platforms", "transformers_utils/config.py", "v1/core", "v1/attention/selector.py",
    "v1/attention/backends", "model_executor/layers/mamba", "model_executor/models/config.py",
)  # fmt: skip
"""Where a configuration is made and checked, and where a worker's share of that is computed."""
UNDECIDING = {
    "CUDA_DEVICE_ORDER": "orders devices",
    "FLASH_ATTENTION_TRITON_AMD_ENABLE": "chooses a kernel that is compiled later",
    "FORCE_NUM_KV_SPLITS": "splits the work of a kernel",
    "HIP_ONLINE_TUNING": "is set, not read",
    "LOCAL_WORLD_SIZE": "counts ranks that a launcher started",
    "NUMEXPR_MAX_THREADS": "is set, not read",
    "PYTHONHASHSEED": "seeds hashes of blocks",
    "RANK": "is the rank that a launcher gave",
    "TORCHINDUCTOR_COMPILE_THREADS": "is set, not read",
    "TORCHINDUCTOR_CPP_DYNAMIC_THREADS": "is set, not read",
    "VLLM_COMPILE_CACHE_SAVE_FORMAT": "is a form of files",
    "VLLM_CPU_ATTN_SPLIT_KV": "splits the work of a kernel",
    "VLLM_DISABLE_PYNCCL": "chooses how ranks talk",
    "VLLM_DISABLE_SHARED_EXPERTS_STREAM": "chooses a stream",
    "VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE": "is memory beside the pool",
    "VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES": "is a form of events",
    "VLLM_ROCM_AITER_MLA_ASM_PADDING": "pads a kernel's input",
    "VLLM_ROCM_USE_AITER_LINEAR_HIPBMM": "chooses a kernel",
    "VLLM_SPARSE_INDEXER_MAX_LOGITS_MB": "is memory beside the pool",
    "VLLM_TRACE_FUNCTION": "writes a file",
    "VLLM_USE_NCCL_SYMM_MEM": "chooses how ranks talk",
    "VLLM_WEIGHT_OFFLOADING_DISABLE_UVA": "is of a platform that no device presents",
    "VLLM_WSL2_ENABLE_PIN_MEMORY": "is of a machine, not of a configuration",
    "VLLM_XPU_ENABLE_XPU_GRAPH": "is of a platform that no device presents",
    "VLLM_XPU_PP_MICROBATCH": "is of a platform that no device presents",
    "XPU_USE_TRITON_KERNEL": "is of a platform that no device presents",
}
"""Variable that is read there and not passed -> why nothing of a verdict depends on it."""


def test_every_variable_that_is_passed_is_read_by_a_release(interpreters):
    read: set[str] = set()
    for wrapper in interpreters.values():
        package = Path(shlex.split(wrapper.read_text().splitlines()[1])[0].partition("=")[2]) / "vllm"
        read |= {name for path in package.rglob("*.py") for name in READ.findall(path.read_text(errors="replace"))}
        read |= set(re.findall(r'^    "([A-Z0-9_]+)": ', (package / "envs.py").read_text(), re.MULTILINE))
    assert sorted(set(PASSED) - read) == []


def variables_of_verdicts(package: Path) -> set[str]:
    files = [
        file
        for place in PLACES
        for file in ([package / place] if place.endswith(".py") else (package / place).rglob("*.py"))
    ]
    return {name for file in files if file.exists() for name in READ.findall(file.read_text(errors="replace"))}


def test_every_variable_that_is_read_where_verdicts_are_made_is_decided(interpreters):
    found: set[str] = set()
    for wrapper in interpreters.values():
        package = Path(shlex.split(wrapper.read_text().splitlines()[1])[0].partition("=")[2]) / "vllm"
        found |= variables_of_verdicts(package)
    assert len(found) > 60
    open_ = {name for name in found if why_withheld(name) in {"it decides no verdict", "it is not the engine's"}}
    assert sorted(open_ - set(UNDECIDING)) == []
