"""`staticfire explain`: what it prints, its exit codes, its JSON, and that its fixes work when pasted."""

import json
import shlex
import subprocess
import sys

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.cli import main
from staticfire.harness.models import catalog

FOUNDING = ["explain", "jamba-tiny", "--quantization", "experts_int8", "--no-enable-chunked-prefill"]


@pytest.fixture(scope="module")
def schema(repo_root):
    document = json.loads((repo_root / "docs" / "schemas" / "explain.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(document)
    return jsonschema.Draft202012Validator(document)


def explained(capsys, *args, code=0):
    assert main(["explain", *args, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_the_founding_fault_is_told_and_its_fix_repairs_it(capsys):
    assert main(FOUNDING) == 1
    out = capsys.readouterr().out
    chain = [
        "is_hybrid=True",
        "enable_prefix_caching=True: default",
        "mamba_cache_mode=align: derived, because the model is hybrid and prefix caching is on",
        "enable_chunked_prefill=False: typed",
    ]
    places = [out.index(link) for link in chain]
    assert places == sorted(places)
    assert "Refused: SF101 align-without-chunked-prefill" in out
    commands = [line.strip() for line in out.splitlines() if line.strip().startswith("staticfire explain")]
    assert len(commands) == 2
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0
    added = [line.split("add ")[1] for line in out.splitlines() if line.strip().startswith("add ")]
    assert added == ["--no-enable-prefix-caching"]
    assert main([*FOUNDING, *added]) == 0


@pytest.mark.parametrize(
    ("flags", "block"),
    [([], 1056), (["--tensor-parallel-size", "4"], 528), (["-tp", "4"], 528), (["--kv-cache-dtype=fp8"], 2096)],
)
def test_a_large_hybrid_shows_its_block_size_in_numbers(capsys, flags, block):
    assert main(["explain", "qwen3.6-35b-a3b", "--like", "vllm==0.28.0", "--device", "h200-141gb", *flags]) == 0
    out = capsys.readouterr().out
    assert f"16 -> {block}" in out
    assert f"{block} x {2048 if block == 1056 else 1024} = " in out
    assert "not runnable yet: the reference engine resolves Qwen3_5MoeForConditionalGeneration" in out
    assert out.rstrip().endswith("Accepted.")


@pytest.mark.parametrize("name", catalog.names())
@pytest.mark.parametrize("flags", [(), ("--no-enable-chunked-prefill",), ("-tp", "3", "--enforce-eager")], ids=str)
def test_json_follows_the_published_schema(capsys, schema, name, flags):
    code = main(["explain", name, *flags, "--json"])
    document = json.loads(capsys.readouterr().out)
    schema.validate(document)
    assert code == (1 if document["violations"] else 0)
    verdict = "refused" if document["violations"] else "not known" if document["limits"] else "accepted"
    assert (document["verdict"], document["accepted"]) == (verdict, verdict == "accepted")
    names = {violation["name"] for violation in document["violations"]}
    if "architecture-not-in-release" not in names:  # no flag brings a model back
        assert (document["fixes"] != []) == (document["violations"] != [])


def test_json_of_the_founding_fault(capsys):
    document = explained(capsys, *FOUNDING[1:], code=1)
    assert document["values"]["cache.mamba_cache_mode"] == {
        "value": "align",
        "source": "derived",
        "because": "the model is hybrid and prefix caching is on",
    }
    assert document["values"]["scheduler.enable_chunked_prefill"] == {"value": False, "source": "typed"}
    assert document["values"]["cache.enable_prefix_caching"] == {"value": True, "source": "default"}
    [violation] = document["violations"]
    assert (violation["code"], violation["name"]) == ("SF101", "align-without-chunked-prefill")
    assert violation["fix"]["flags"] == ["--no-enable-prefix-caching"]
    assert main(shlex.split(violation["fix"]["command"])[1:]) == 0


def test_a_copied_config_that_is_edited_moves_the_answer(capsys, tmp_path):
    """Jamba-tiny: a token is 512 B in float32, a state 128 x (3 + N) x 4 B."""
    hf = dict(catalog.load("jamba-tiny").config)
    blocks = {}
    for d_state in (8, 64, 128):
        (tmp_path / "config.json").write_text(json.dumps({**hf, "mamba_d_state": d_state}))
        blocks[d_state] = explained(capsys, str(tmp_path))["runtime"]["block_size"]
    assert blocks == {8: 16, 64: 80, 128: 144}
    wide = explained(capsys, str(tmp_path), "--dtype", "bfloat16", "--mamba-ssm-cache-dtype", "float32")
    # 256 B a token; 128 * 3 * 2 + 128 * 128 * 4 = 66304 B: 259 tokens, so 272
    assert wide["runtime"]["block_size"] == 272
    narrow = explained(capsys, str(tmp_path), "--dtype", "bfloat16")
    # 128 * 3 * 2 + 128 * 128 * 2 = 33536 B: 131 tokens, so 144
    assert narrow["runtime"]["block_size"] == 144


def test_a_device_changes_the_defaults(capsys):
    cpu = explained(capsys, "jamba-1.5-mini", "--device", "cpu")["values"]["scheduler.max_num_batched_tokens"]["value"]
    gpu = explained(capsys, "falcon-h1-0.5b", "--device", "h200-141gb")
    assert (cpu, gpu["values"]["scheduler.max_num_batched_tokens"]["value"]) == (4096, 16384)
    small = explained(capsys, "falcon-h1-0.5b", "--device", "l4", "--max-model-len", "1k")
    assert small["values"]["model.max_model_len"] == {"value": 1000, "source": "typed"}
    too_small = explained(capsys, "qwen3.6-35b-a3b", "--device", "l4", code=1)
    assert [v["code"] for v in too_small["violations"]] == ["SF106"]
    assert "--device l4" in too_small["violations"][0]["fix"]["command"]


def test_what_is_rewritten_or_ignored_is_said(capsys):
    document = explained(
        capsys, "jamba-tiny", "--mamba-cache-mode", "align", "--no-enable-prefix-caching", "--enforce-eager"
    )
    assert [(r["code"], r["typed"], r["value"]) for r in document["rewrites"]] == [
        ("SF601", "align", "none"),
        ("SF608", True, None),
    ]


def test_what_no_flag_repairs_gets_advice(capsys, tmp_path):
    hf = {**catalog.load("llama-tiny").config, "quantization_config": {"quant_method": "fp8"}}
    (tmp_path / "config.json").write_text(json.dumps(hf))
    assert main(["explain", str(tmp_path), "--like", "reference"]) == 1
    out = capsys.readouterr().out
    assert "No change of flags was found" in out
    assert "Use the unquantized checkpoint." in out


@pytest.mark.parametrize(("option", "kind"), [("--like", "release"), ("--device", "device")])
def test_an_empty_name_is_no_default(capsys, option, kind):
    assert main(["explain", "jamba-tiny", option, ""]) == 2
    assert f"No {kind} named ''" in capsys.readouterr().err


def test_a_release_that_may_have_what_we_lack_refuses_nothing(capsys, tmp_path):
    hf = {**catalog.load("llama-tiny").config, "quantization_config": {"quant_method": "fp8"}}
    (tmp_path / "config.json").write_text(json.dumps(hf))
    assert main(["explain", str(tmp_path), "--like", "vllm==0.33.0"]) == 0
    out = capsys.readouterr().out
    assert "Refused" not in out
    assert out.rstrip().endswith("Not known whether vllm==0.33.0 accepts it: what SF504 names is not computed here.")


def test_what_is_not_known_hides_no_refusal_and_is_kept_by_its_fix(capsys):
    document = explained(capsys, "jamba-tiny", "--enable-lora", "--no-enable-chunked-prefill", code=1)
    assert [one["code"] for one in document["violations"]] == ["SF101"]
    assert [one["code"] for one in document["limits"]] == ["SF501"]
    for fix in document["fixes"]:
        assert "--enable-lora" in fix["command"]
        assert main(shlex.split(fix["command"])[1:]) == 0
        assert "Not known whether vllm==0.33.0 accepts it" in capsys.readouterr().out


def test_a_release_that_has_stages_and_processes_takes_them(capsys):
    for flags in (["--pipeline-parallel-size", "2"], ["--data-parallel-size", "2", "--no-enable-multiprocessing"]):
        assert explained(capsys, "llama-3.1-8b", *flags)["verdict"] == "accepted"
        assert explained(capsys, "llama-3.1-8b", "--like", "reference", *flags, code=1)["violations"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "Name a model"),
        (["jamba-tiny", "llama-tiny"], "One model at a time"),
        ([""], "The name of a model is empty"),
        (["jamba-tny"], "Did you mean 'jamba-tiny'?"),
        (["jamba-tiny", "--device", "h100"], "Did you mean 'h100-80gb'?"),
        (["jamba-tiny", "--blok-size", "16"], "did you mean --block-size?"),
        (["jamba-tiny", "--max-num-seqs", "0"], "max_num_seqs=0 should be greater than 0"),
        (["jamba-tiny", "--quantization", "expert_int8"], "did you mean 'experts_int8'?"),
        (["owner/name"], "cannot be reached from here"),
    ],
    ids=str,
)
def test_bad_input_is_one_clear_error(capsys, args, message):
    assert main(["explain", *args]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_faults_of_every_kind_are_told_at_once(capsys):
    words = ["--blok-size", "16", "--dtype", "flot16", "--max-model-len", "0", "--seed", "abc", "--device", "cp"]
    assert main(["explain", "jamba-tiny", *words]) == 2
    err = capsys.readouterr().err
    for part in ("--blok-size", "dtype='flot16'", "max_model_len=0", "--seed abc", "Did you mean 'cpu'?"):
        assert part in err
    assert "One model" not in err
    assert main(["explain", "jamba-tny", "--dtype", "flot16"]) == 2
    err = capsys.readouterr().err
    assert "Did you mean 'jamba-tiny'?" in err
    assert "did you mean 'float16'?" in err


@pytest.mark.parametrize(
    "flag",
    [
        "--block-size",
        "--max-model-len",
        "--max-num-seqs",
        "--max-num-batched-tokens",
        "--num-gpu-blocks-override",
        "--kv-cache-memory-bytes",
        "--mamba-block-size",
        "--tensor-parallel-size",
        "--pipeline-parallel-size",
        "--data-parallel-size",
        "--long-prefill-token-threshold",
    ],
)
def test_no_number_is_too_large_to_answer(capsys, flag):
    assert main(["explain", "jamba-tiny", flag, "9" * 400]) == 2
    assert f"should be less than or equal to {2**63 - 1}" in capsys.readouterr().err
    assert main(["explain", "jamba-tiny", flag, str(2**63 - 1)]) in {0, 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ('{"model_type": ' + "[" * 100_000, "nested too deeply"),
        ('{"model_type": "jamba", "vocab_size": ' + "9" * 5000 + "}", "not a number that can be read"),
        ('{"model_type": "jamba", "vocab_size": ' + "9" * 400 + "}", f"must be an integer of at most {2**63 - 1}"),
        ('{"model_type": "gpt2"}', "can read (known: bamba"),
        ("[]", "expected a JSON object"),
        ("{}", "model_type"),
        ('{"model_type": "jambo"}', "did you mean 'jamba'?"),
        ('{"model_type": "jamba"}', "config.json has no hidden_size"),
    ],
)
def test_a_broken_config_is_one_clear_error(capsys, tmp_path, text, message):
    (tmp_path / "config.json").write_text(text)
    assert main(["explain", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err


def test_field_errors_and_broken_rules_stand_together(capsys):
    assert main(["explain", "jamba-tiny", "--no-enable-chunked-prefill", "--dtype", "float8"]) == 2
    err = capsys.readouterr().err
    assert "dtype='float8' is not one of" in err
    assert "SF101 align-without-chunked-prefill" in err


def test_help_lists_the_flags(capsys):
    assert main(["explain", "--help"]) == 0
    out = capsys.readouterr().out
    assert "--enable-chunked-prefill / --no-enable-chunked-prefill" in out
    assert "--mamba-cache-mode TEXT" in out


PROBE = """
import sys
from staticfire.harness.cli import main
code = main(sys.argv[1:])
heavy = sorted({"torch", "transformers", "triton", "rich", "jinja2", "huggingface_hub"} & set(sys.modules))
print("HEAVY", heavy, file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize("args", [["--help"], FOUNDING, ["rules"], ["rule", "SF101"]], ids=str)
def test_nothing_heavy_is_imported(args):
    done = subprocess.run([sys.executable, "-c", PROBE, *args], capture_output=True, text=True, check=False)
    assert "HEAVY []" in done.stderr, done.stderr


pairs = st.fixed_dictionaries(
    {},
    optional={
        "--mamba-block-size": st.sampled_from(["8", "12", "64"]),
        "--block-size": st.sampled_from(["16", "24", "64"]),
        "--quantization": st.sampled_from(["experts_int8", "fp8"]),
        "--max-num-batched-tokens": st.sampled_from(["8", "4k"]),
        "--max-num-seqs": st.sampled_from(["4", "64"]),
        "--speculative-config": st.just('{"method": "ngram"}'),
    },
)


@given(pairs=pairs, chunked=st.booleans(), device=st.sampled_from(["cpu", "h100-80gb"]))
def test_every_printed_command_is_accepted(pairs, chunked, device):
    """What `explain` prints as a fix is pasted back, whole."""
    from staticfire.engine.config import REFERENCE, model_info, repairs, resolve
    from staticfire.harness.cli.explanation import Explanation
    from staticfire.harness.cli.flags import parse
    from staticfire.harness.models import devices

    words = [word for pair in pairs.items() for word in pair]
    typed = parse([*words, "--enable-chunked-prefill" if chunked else "--no-enable-chunked-prefill"]).typed
    found = catalog.find("jamba-tiny")
    model, target = model_info(found.hf, found.name), devices.find(device)
    fixes = repairs(typed, model, target)
    resolution = resolve(typed, model, target)
    named = (True, True)
    explanation = Explanation("jamba-tiny", found.where, model, REFERENCE, target, named, typed, resolution, fixes)
    assert bool(fixes) == (not resolution.accepted)
    for fix in fixes:
        words = shlex.split(explanation.command(fix))[2:]
        again = parse([word for word in words if word not in {"--like", "reference", "--device", device}])
        assert again.positional == ["jamba-tiny"]
        assert resolve(again.typed, model, target).accepted
