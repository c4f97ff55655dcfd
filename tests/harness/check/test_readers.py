"""What check reads besides sites: tables of models, an engine's source, the code around a site, messages, patterns."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.check import architectures, frontend, surroundings
from staticfire.harness.check.architectures import Fit
from staticfire.harness.check.cases import cases
from staticfire.harness.check.messages import clean, mentions, normalise, numbers, printable, slug
from staticfire.harness.check.models import named_configuration
from staticfire.harness.check.negative import Template, expectation, literal_parts
from staticfire.harness.check.templates import read as read_templates
from staticfire.harness.scan.base import Configuration, Location, Scan, Site

TABLE = """
import os
os.system("rm -f MARKER")
A = {
    "JambaForCausalLM": _HfExamplesInfo("ai21labs/Jamba-1.5-Mini", extras={"tiny": "ai21labs/Jamba-tiny-dev"}),
    "LlamaForCausalLM": _HfExamplesInfo("meta-llama/Llama-3.2-1B-Instruct", {"old": "acme/llama-7b"}, trust=True),
    "Qwen3ForCausalLM": _HfExamplesInfo("Qwen/Qwen3-8B"),
    "OlmoeForCausalLM": _HfExamplesInfo(NAME),
    "NotAnEntry": "a/b",
    "MambaForCausalLM": models._HfExamplesInfo("state-spaces/mamba-130m-hf"),
    "EagleMambaForCausalLM": _HfExamplesInfo("x/target", extras={"more": "x/more"}, speculative_model="x/draft"),
    "MambaMTPModel": _HfExamplesInfo("y/target", speculative_model="state-spaces/mamba-130m-hf"),
    "GemmaForCausalLM": _HfExamplesInfo("google/gemma-1.1-2b-it"),
    "Gemma2ForCausalLM": _HfExamplesInfo("google/gemma-2-9b"),
    "DeepseekForCausalLM": _HfExamplesInfo("deepseek-ai/deepseek-llm-7b-chat"),
    "DeepseekV3ForCausalLM": _HfExamplesInfo("deepseek-ai/DeepSeek-V3"),
    "NemotronForCausalLM": _HfExamplesInfo("nvidia/Minitron-8B-Base"),
    "NemotronHForCausalLM": _HfExamplesInfo("nvidia/Nemotron-H-8B-Base-8K"),
    "OtherForCausalLM": _HfExamplesInfo("nvidia/NVIDIA-Other-8B"),
    "Qwen3MoeForCausalLM": _HfExamplesInfo("Qwen/Qwen3-30B-A3B"),
}
"""


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "tests" / "models" / "registry.py"
    file.parent.mkdir(parents=True)
    file.write_text(TABLE)
    (tmp_path / "tests" / "quantization").mkdir()
    return file


def test_a_table_beside_the_paths_says_what_models_are(table):
    found = architectures.tables([table.parents[1] / "quantization"])
    assert found == [table.resolve()]
    known = architectures.read(found)
    assert known.of("ai21labs/Jamba-tiny-dev") == Fit(("JambaForCausalLM",), guessed=False)
    assert known.of("acme/llama-7b") == Fit(("LlamaForCausalLM",), guessed=False)
    assert known.of("state-spaces/mamba-130m-hf") == Fit(("MambaForCausalLM",), guessed=False)


def test_the_architecture_of_a_pair_is_that_of_the_draft(table):
    known = architectures.read([table])
    assert known.of("x/draft") == Fit(("EagleMambaForCausalLM",), guessed=False)
    assert [known.of(model) for model in ("x/target", "x/more", "y/target")] == [None, None, None]


@pytest.mark.parametrize("model", ["z-lab/Qwen3-8B-DFlash-b16", "acme/Llama-3-speculator.eagle3", "acme/Qwen3-8B-MTP"])
def test_a_draft_is_not_what_its_name_says_that_it_drafts_for(table, model):
    assert architectures.read([table]).of(model) is None


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("acme/Qwen3-30B-A3B-FP8", "Qwen3MoeForCausalLM"),
        ("acme/Qwen3-Coder-480B-A35B-NVFP4", "Qwen3MoeForCausalLM"),
        ("google/gemma-2-27b", "Gemma2ForCausalLM"),
        ("hmellor/tiny-random-LlamaForCausalLM", "LlamaForCausalLM"),
        ("TheBloke/TinyLlama-1.1B", "LlamaForCausalLM"),
        ("meta-llama/Llama-3.2-3B", "LlamaForCausalLM"),
        ("acme/unheard-of", None),
    ],
)
def test_names_of_a_family_are_a_guess(table, model, kind):
    assert architectures.read([table]).of(model) == (Fit((kind,), guessed=True) if kind else None)


@pytest.mark.parametrize(
    ("model", "kinds"),
    [
        ("Qwen/Qwen3-0.6B-FP8", ("Qwen3ForCausalLM", "Qwen3MoeForCausalLM")),
        ("deepseek-ai/DeepSeek-R1", ("DeepseekForCausalLM", "DeepseekV3ForCausalLM")),
        ("nvidia/NVIDIA-Nemotron-3-Super-120B", ("NemotronForCausalLM", "NemotronHForCausalLM")),
        ("TechxGenus/gemma-2b-it-GPTQ", ("GemmaForCausalLM", "Gemma2ForCausalLM")),
    ],
)
def test_a_name_that_fits_several_architectures_is_all_of_them(table, model, kinds):
    """The size of a `gemma-2b` is no version, and a family with dense and sparse members is both."""
    assert architectures.read([table]).of(model) == Fit(kinds, guessed=True)


def test_what_is_no_table_adds_nothing(tmp_path):
    (tmp_path / "broken.py").write_text("A = {")
    assert architectures.read([tmp_path / "broken.py", tmp_path / "none.py"]) == architectures.Architectures()


def test_an_engines_messages_are_read_from_its_source(tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "a.py").write_text(
        "raise ValueError(f'block size {b} is ' + 'too small')\nassert x, 'no x'\nraise pkg.Other(message)\n"
    )
    assert set(read_templates(tmp_path)) == {
        Template("ValueError", "block size {} is too small"),
        Template("AssertionError", "no x"),
    }


def test_flags_of_a_front_end_are_read_from_its_source(tmp_path):
    (tmp_path / "entrypoints").mkdir()
    (tmp_path / "entrypoints" / "a.py").write_text(
        "class Args:\n    enable_scale: bool = False\nparser.add_argument('--api-key', '-k')\n"
    )
    assert frontend.names(tmp_path) == {"enable_scale", "api_key"}
    assert frontend.unexpected("X.__init__() got an unexpected keyword argument 'api_key'") == "api_key"


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("max_model_len", "32k", 32000),
        ("offload_params", "gate_up_proj", ["gate_up_proj"]),
        ("numa_bind_nodes", 1, [1]),
        ("max_model_len", "128K", 131072),
        ("max_num_batched_tokens", "1.5k", 1500),
        ("max_model_len", "auto", -1),
        ("max_model_len", "many", "many"),
        ("quantization", "4k", "4k"),
        ("max_num_seqs", 8, 8),
    ],
)
def test_counts_are_read_as_a_command_line_reads_them(name, value, read):
    assert frontend.parsed({name: value}) == {name: read}


AROUND = """
def test_refused():
    args = EngineArgs(model="m")
    with pytest.raises(ValueError):
        args.create_engine_config()

def test_plain():
    args = EngineArgs(model="m")
    args.create_engine_config()
"""


@pytest.mark.parametrize(
    ("line", "form", "doubted"), [(3, "EngineArgs", True), (8, "EngineArgs", False), (3, "LLM", False)]
)
def test_arguments_alone_are_doubted_where_a_refusal_is_expected_later(tmp_path, line, form, doubted):
    (tmp_path / "a.py").write_text(AROUND)
    site = Site(Location(str(tmp_path / "a.py"), line, 12), form, "f", (Configuration("m", {}),))
    assert bool(surroundings.doubt(site)) == doubted


@pytest.mark.parametrize(
    ("message", "value", "doubted"),
    [
        ("Unsupported connector type: MockKVConnector", {"kv_connector": "MockKVConnector"}, True),
        ("Unknown quantization method: custom_quant.", "custom_quant", True),
        ("Unknown quantization method: awq2.", "awq2", False),
        ("custom_quant takes no float16", "custom_quant", False),
    ],
)
def test_names_that_code_registers_itself_are_doubted(message, value, doubted):
    assert bool(surroundings.registered(message, [value])) == doubted


@pytest.mark.parametrize(
    ("path", "device", "doubted"),
    [
        ("evals/Qwen3-4B-ROCm.yaml", "h100-80gb", True),
        ("evals/x_MI355.yaml", "h100-80gb", True),
        ("evals/x_MI355.yaml", "mi300x", True),
        ("evals/x-h100.yaml", "h100-80gb", False),
        ("tests/cpu/test_a.py", "cpu", False),
        ("tests/hybrid/test_l40.py", "l4-24gb", True),
        ("tests/quantization/test_a.py", "h100-80gb", False),
    ],
)
def test_files_named_after_another_device_are_doubted(path, device, doubted):
    site = Site(Location(path, 1, 1), "LLM", "", (Configuration("m", {}),))
    (case,) = cases(Scan((site,)), device)
    assert bool(case.doubts) == doubted


def test_messages_are_told_without_what_pydantic_wraps_around_them():
    wrapped = (
        "1 validation error for VllmConfig\n  Value error, Chunked prefill is required. [type=value_error, "
        "input_value=ArgsKwargs((), {'a': ...}), input_type=ArgsKwargs]\n"
        "    For further information visit https://errors.example/v/value_error"
    )
    assert clean(wrapped) == "Chunked prefill is required."


def test_messages_of_one_cause_read_the_same():
    one = normalise("max_model_len (8192) of org/m-7b at /tmp/x/y is over 4096", "org/m-7b")
    other = normalise("max_model_len (9)  of z/n at /srv/a/b is over 1", "z/n")
    assert one == other
    assert normalise("int8 needs x") != normalise("int4 needs x")


@pytest.mark.parametrize(
    ("message", "keyword", "spoken"),
    [
        ("Chunked prefill is required", "enable_chunked_prefill", True),
        ("set --no-enable-prefix-caching", "enable_prefix_caching", True),
        ("block_size must be even", "block_size", True),
        ("the block is large", "block_size", False),
        ("max_num_seqs_total", "max_num_seqs", False),
    ],
)
def test_which_keywords_a_message_speaks_of(message, keyword, spoken):
    assert mentions(message, keyword) is spoken


FAULTS = """Configuration refused: 7 faults
  unknown-option: 'swap_space' is no keyword of vLLM 0.27.1 to 0.33.0
  int_type: max_model_len='x' should be at most 8192
  SF101 align: mamba_cache_mode=align needs chunked prefill
    is_hybrid=True: derived, because config.json has 2 attention and 3 mamba1 layers"""


@pytest.mark.parametrize(
    ("message", "keyword", "found"),
    [
        ("block_size: at most 1,024 of 2048 in v0.33.0, 2048 again", "block_size", (1024, 2048)),
        (FAULTS, "max_model_len", (8192,)),
        (FAULTS, "swap_space", ()),
        (FAULTS, "mamba_cache_mode", ()),
        ("12 validation errors for ModelConfig\nseed\n  Value error, seed must be 3 [type=x]", "seed", (3,)),
        ("seed=-1 should be greater than 0", "seed", (0,)),
        ("block_size 16 (arg_utils.py:1994) uses 90% of gpt-2-16k in fp8", "block_size", (16,)),
        ("the model has 32 heads\nblock_size must divide 64", "block_size", (64,)),
        ("seed " + "9" * 5000, "seed", ()),
        (
            "max_model_len (9,000) is beyond max_position_embeddings=2048.0; or set VLLM_ALLOW_LONG_MAX_MODEL_LEN=1",
            "max_model_len",
            (9000, 2048),
        ),
        ("max_model_len takes no 0.5 and no 1.25", "max_model_len", ()),
    ],
)
def test_numbers_are_those_that_a_message_gives_for_a_keyword(message, keyword, found):
    assert numbers(message, keyword) == found


def test_a_count_of_faults_is_no_part_of_what_is_said():
    assert clean("Configuration refused: 1 fault\n  int_type: seed=nan should be an integer") == (
        "int_type: seed=nan should be an integer"
    )
    assert clean(FAULTS).splitlines()[-1] == (
        "  is_hybrid=True: derived, because config.json has 2 attention and 3 mamba1 layers"
    )


def test_slugs_of_messages():
    assert slug("Chunked prefill is required for mamba cache mode 'align'.") == (
        "chunked-prefill-is-required-for-mamba-cache-mode"
    )


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("Chunked prefill is required", ["Chunked prefill is required"]),
        (r"must be at most \d+ tokens", ["must be at most ", " tokens"]),
        (r"one\.two.*three", ["one.two", "three"]),
        ("either|or", []),
        ("[Cc]hunked prefill", ["hunked prefill"]),
    ],
)
def test_literal_parts_of_a_pattern(pattern, parts):
    assert literal_parts(pattern) == parts


@given(st.text("abcdefgh ", min_size=12, max_size=40))
def test_a_literal_pattern_fits_the_template_it_is_in(text):
    found = expectation(re.escape(text), ["ValueError"], [], [Template("ValueError", f"first {text} last {{}}")])
    assert found.fits
    assert not expectation(re.escape(text), ["KeyError"], [], [Template("ValueError", text)]).fits


def test_a_hostile_pattern_ends_in_time():
    started = time.monotonic()
    for pattern in ("(a+)+$", "(a|a)*b", "a*" * 60 + "b", "(" * 5000, "[" * 9000, "x{1,99999}" * 5):
        expectation(pattern, ["ValueError"], ["a" * 40] * 20, [Template("ValueError", "a" * 4000)])
    assert time.monotonic() - started < 30  # it is milliseconds; without bounds it is for ever


@pytest.mark.parametrize("model", ["../secret", "a/../../b", "/etc/x", "~/x", "", "./x"])
def test_a_model_name_does_not_lead_out_of_the_folder(tmp_path, model):
    for name in ("secret", "x", "b"):
        (tmp_path / f"{name}.json").write_text("{}")
    (tmp_path / "configs").mkdir()
    assert named_configuration(model, tmp_path / "configs") is None


@given(st.text())
def test_printable_text_holds_no_control_characters(text):
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", printable(text))


REGISTERS = """
@register_quantization_config("custom_quant")
class CustomQuant: ...
Factory.register_connector(name="MockConnector", module=__name__)
print("other_quant")
"""


@pytest.mark.parametrize(
    ("value", "registered"),
    [("custom_quant", True), ({"kv_connector": "MockConnector"}, True), ("other_quant", False)],
)
def test_a_name_that_the_file_registers_itself_is_known_when_it_runs(tmp_path, value, registered):
    file = tmp_path / "test_it.py"
    file.write_text(REGISTERS)
    one = Site(Location(str(file), 5, 1), "LLM", "test", ())
    text = value if isinstance(value, str) else value["kv_connector"]
    assert surroundings.registers(one, f"Unknown method: {text}.", [value]) is registered
    assert not surroundings.registers(one, f"{text} needs a GPU.", [value])


@pytest.mark.parametrize(
    ("imported", "registered"),
    [
        ("from .helpers import make", True),
        ("from . import helpers", True),
        ("from .further import make", True),
        ("import os", False),
        ("from vllm_new_method import loader", True),
        ("from vllm.plugins import loader", False),
    ],
)
def test_a_name_that_an_imported_file_or_a_plugin_registers_is_known_too(tmp_path, imported, registered):
    folder = tmp_path / "suite"
    folder.mkdir()
    for name, text in {
        "__init__": "",
        "helpers": REGISTERS,
        "further": "from suite.helpers import make",
        "test_it": imported,
    }.items():
        (folder / f"{name}.py").write_text(text)
    one = Site(Location(str(folder / "test_it.py"), 5, 1), "LLM", "test", ())
    assert surroundings.registers(one, "Unknown method: custom_quant.", ["custom_quant"]) is registered


@pytest.mark.parametrize(
    ("path", "other"),
    [
        ("tests/test_cpu_offload.py", False),
        ("tests/kv_offload/cpu/test_it.py", False),
        ("tests/unit/test_simple_cpu_offload_connector.py", False),
        ("tests/test_cpu_attn.py", True),
        ("tests/offload/test_rocm.py", True),
    ],
)
def test_what_is_moved_to_the_cpu_is_not_for_the_cpu(path, other):
    one = Site(Location(path, 1, 1), "LLM", "test", (Configuration("m", {}),))
    (case,) = cases(Scan((one,), {}), "h100-80gb")
    assert bool(case.doubts) is other
