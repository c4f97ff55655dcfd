"""Which exceptions refuse a configuration and which only say that something failed here."""

import sys
import types
from pathlib import Path

import pydantic
import pytest

from staticfire.harness.probe.vllm.agent import verdict


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """A package `vllm` with one module, whose functions raise what they are given."""
    folder = tmp_path / "vllm"
    folder.mkdir()
    module = types.ModuleType("vllm")
    module.__path__ = [str(folder)]
    monkeypatch.setitem(sys.modules, "vllm", module)

    def raising(error, where="config/model.py"):
        path = folder / where if not Path(where).is_absolute() else Path(where)
        code = compile("\n\ndef act():\n    raise error\n", str(path), "exec")
        space = {"error": error}
        exec(code, space)
        try:
            space["act"]()
        except BaseException as caught:  # noqa: BLE001
            return caught
        raise AssertionError

    return raising


@pytest.mark.parametrize("kind", [ValueError, AssertionError, NotImplementedError, RuntimeError])
def test_what_the_engine_raises_on_purpose_is_a_refusal_with_its_line(engine, kind):
    answer = verdict.read(engine(kind("block_size must be even")), "front end")
    assert answer == {
        "outcome": "rejected",
        "kind": "rule",
        "message": "block_size must be even",
        "origin": "vllm/config/model.py:4",
        "phase": "front end",
        "values": [],
    }


@pytest.mark.parametrize("kind", [AttributeError, KeyError, IndexError, TypeError, ImportError, OSError, MemoryError])
def test_what_merely_goes_wrong_is_no_refusal(engine, kind):
    answer = verdict.read(engine(kind("something")), "front end")
    assert answer["outcome"] == "crashed"
    assert kind.__name__ in answer["detail"]


@pytest.mark.parametrize(
    "message",
    [
        "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU",
        "No CUDA GPUs are available",
        "Torch not compiled with CUDA enabled",
        "libcuda.so.1: cannot open shared object file: No such file or directory",
        "World size (16) is larger than the number of available GPUs (8) in this node.",
        "Failed to find C compiler. The compiler is not found",
        "We couldn't connect to 'https://huggingface.co' to load the files",
        "Cannot find the requested files in the disk cache; offline mode is enabled.",
        "flashinfer is not installed",
        "Please install bitsandbytes>=0.46.1 by running `pip install bitsandbytes`",
        "Model architectures ['X'] failed to be inspected. Please check the logs for more details.",
        "Decision checkpoints need a decision_config.json",
        "this requires the NIXL package",
        "AITER is not available on this platform",
        "Selected backend X is not valid for this configuration. Reason: ['ImportError']",
        "--kv-cache-dtype fp8 is not supported by the CPU attention backend on this host.",
    ],
)
@pytest.mark.parametrize("kind", [ValueError, RuntimeError])
def test_what_is_about_this_machine_is_no_refusal(engine, kind, message):
    assert verdict.read(engine(kind(message)), "front end")["outcome"] == "crashed"


@pytest.mark.parametrize(
    "message",
    [
        "Chunked prefill is required for mamba cache mode 'align'.",
        "Chunked prefill is required for Mamba prefix caching.",
        "Total number of attention heads (32) must be divisible by tensor parallel size (3).",
        "The quantization method fp8 is not supported for the current GPU. Minimum capability: 89. Current: 80.",
        "User-specified max_model_len (9) is greater than the derived max_model_len in model's config.json.",
        "max_num_seqs (100000) exceeds available Mamba cache blocks (60293).",
        "Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla GPU has 7.5.",
    ],
)
def test_what_is_about_the_configuration_is_a_refusal(engine, message):
    answer = verdict.read(engine(ValueError(message)), "front end")
    assert (answer["outcome"], answer["message"]) == ("rejected", message)


def test_a_refusal_that_wraps_a_missing_library_is_about_this_machine(engine):
    inner = engine(ImportError("No module named 'amdsmi'"))
    outer = ValueError("backend is invalid")
    outer.__cause__ = inner
    assert verdict.read(engine(outer), "front end")["outcome"] == "crashed"


def test_a_value_error_of_another_package_is_no_refusal_of_the_engine(engine, tmp_path):
    elsewhere = engine(ValueError("cannot convert"), str(tmp_path / "numpy" / "core.py"))
    assert verdict.read(elsewhere, "front end")["outcome"] == "crashed"


@pytest.mark.parametrize(("typed", "outcome"), [(["block_sise"], "rejected"), ([], "crashed")])
def test_only_a_typed_keyword_can_be_an_unexpected_one_of_the_users(engine, typed, outcome):
    error = engine(TypeError("EngineArgs.__init__() got an unexpected keyword argument 'block_sise'"))
    answer = verdict.read(error, "front end", typed)
    assert answer["outcome"] == outcome
    if typed:
        assert answer["kind"] == "field"


class Config(pydantic.BaseModel):
    size: int = pydantic.Field(default=16, gt=0)
    share: float = pydantic.Field(default=0.9, le=1)
    fail: bool = False

    @pydantic.model_validator(mode="after")
    def check(self):
        if self.fail:
            raise ValueError("sizes clash")
        return self


def validation(**values):
    with pytest.raises(pydantic.ValidationError) as caught:
        Config(**values)
    return caught.value


def test_all_faults_of_fields_are_in_one_message(engine):
    answer = verdict.read(engine(validation(size=-1, share=2)), "front end")
    assert answer["kind"] == "field"
    assert answer["message"] == ("size: Input should be greater than 0; share: Input should be less than or equal to 1")


def test_a_rule_inside_a_validation_keeps_its_own_words(engine):
    answer = verdict.read(engine(validation(fail=True)), "worker")
    assert (answer["kind"], answer["message"], answer["phase"]) == ("rule", "sizes clash", "worker")


def test_a_refusal_without_words_says_its_kind(engine):
    assert verdict.read(engine(AssertionError()), "front end")["message"] == "AssertionError"
