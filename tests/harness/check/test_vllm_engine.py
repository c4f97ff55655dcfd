"""The vLLM engine over a probe that is scripted: stand-ins, front-end flags, missing files, context lengths."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from staticfire.harness.check import vllm_engine
from staticfire.harness.check.engines import Asked
from staticfire.harness.check.question import Question, UnknownModel
from staticfire.harness.check.vllm_engine import GUESSED, STAND_IN, VllmEngine
from staticfire.harness.errors import InputError
from staticfire.harness.probe.base import Accepted, Crashed, Rejected, Seen
from staticfire.harness.probe.vllm.identity import Installed
from staticfire.harness.probe.vllm.probe import VllmProbe

TABLE = """
A = {
    "JambaForCausalLM": _HfExamplesInfo("ai21labs/Jamba-1.5-Mini", extras={"tiny": "ai21labs/Jamba-tiny-dev"}),
    "BrokenForCausalLM": _HfExamplesInfo("acme/broken-7b"),
    "NovelForCausalLM": _HfExamplesInfo("acme/novel-7b"),
    "MixForCausalLM": _HfExamplesInfo("mix/Mix-7B"),
    "MixMoeForCausalLM": _HfExamplesInfo("mix/Mix-30B-A3B"),
    "MixBrokenForCausalLM": _HfExamplesInfo("mix/Mix-9B"),
}
"""
CHUNKED = Rejected("rule", "Chunked prefill is required.", "vllm/config.py:1")


class Scripted(VllmProbe):
    """Answers by its own few rules; notes what it is asked."""

    def __init__(self, package):
        self.installed = Installed("python", "9.9", str(package), "0" * 64, {})
        self.beyond = None
        self.asked = []

    @property
    def identity(self):
        return SimpleNamespace(version="9.9")

    def default_configs(self, architectures, *, sizes=1):
        return {
            name: "transformers knows no such class"
            if name == "NovelForCausalLM"
            else {"architectures": [name], "hidden_size": 64 * sizes, "max_position_embeddings": 2048}
            for name in architectures
        }

    def answer(self, questions):
        self.asked += questions
        return [self.one(question) for question in questions]

    def one(self, question):
        config = json.loads((Path(question.model) / "config.json").read_text()) if question.model else {}
        typed = dict(question.arguments)
        if typed.get("enable_expert_parallel") and "Moe" not in config["architectures"][0]:
            return Rejected("rule", "Number of experts in the model must be greater than 0", "vllm/config.py:8")
        if config.get("architectures") in (["BrokenForCausalLM"], ["MixBrokenForCausalLM"]):
            return Rejected("rule", "this configuration lacks a head", "vllm/config.py:9")
        if "swap" in typed or "api_key" in typed:
            name = "api_key" if "api_key" in typed else "swap"
            return Rejected("field", f"__init__() got an unexpected keyword argument '{name}'", "vllm/args.py:1")
        if typed.get("max_model_len", 0) > config.get("max_position_embeddings", 0):
            message = (
                f"User-specified max_model_len ({typed['max_model_len']}) is greater than the derived max_model_len"
            )
            return Rejected("rule", message, "vllm/config.py:2")
        if typed.get("enable_chunked_prefill") is False:
            return CHUNKED
        if typed.get("tensor_parallel_size", 1) > 1:
            return Rejected("rule", "heads (3) must be divisible by 2", "vllm/config.py:3")
        if typed.get("quantization") == "wide" and config.get("hidden_size") == 64:
            return Rejected("rule", "too narrow", "vllm/config.py:4")
        if typed.get("config_format") == "mistral":
            return Rejected("rule", f"Failed to load mistral 'params.json' for {question.model}", "vllm/config.py:5")
        if typed.get("backend"):
            message = "No valid attention backend. Reasons: {A: [block_size not supported, x is not installed]}"
            return Rejected("rule", message, "vllm/config.py:6", phase="worker")
        return Accepted({"model.hidden_size": config.get("hidden_size")}, {})

    def close(self):
        self.asked.append("closed")


@pytest.fixture
def probe(tmp_path, monkeypatch):
    monkeypatch.setenv("STATICFIRE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "registry.py").write_text(TABLE)
    package = tmp_path / "vllm"
    (package / "entrypoints").mkdir(parents=True)
    (package / "entrypoints" / "a.py").write_text("class Args:\n    api_key: str = ''\n")
    (package / "engine").mkdir()
    (package / "engine" / "arg_utils.py").write_text(
        "class EngineArgs:\n    max_model_len: int = 1\n    seed: int = 0\n    def f(self): ...\n"
        "class AsyncEngineArgs(EngineArgs):\n    api_process_count: int = 1\nclass Other:\n    x: int = 0\n"
    )
    scripted = Scripted(package)
    monkeypatch.setattr(vllm_engine, "open_probe", lambda *_: scripted)
    return scripted


@pytest.fixture
def engine(probe, tmp_path):
    return VllmEngine(Asked("h100-80gb", suite=(tmp_path,)))


def asked(engine, model="ai21labs/Jamba-tiny-dev", entry="LLM", **arguments):
    question = Question(model, arguments, entry)
    (answer,) = engine.ask([question])
    return answer, engine.doubt(question)


def test_a_refusal_that_names_no_figure_and_holds_for_other_sizes_is_certain_for_a_stand_in(engine):
    assert asked(engine, enable_chunked_prefill=False) == (CHUNKED, "")


@pytest.mark.parametrize("typed", [{"tensor_parallel_size": 2}, {"quantization": "wide"}, {}])
def test_other_answers_about_a_stand_in_are_doubted(engine, typed):
    _, doubt = asked(engine, **typed)
    assert doubt == STAND_IN


def test_an_architecture_guessed_from_a_name_makes_nothing_certain(engine):
    assert asked(engine, "acme/Jamba-huge", enable_chunked_prefill=False) == (CHUNKED, GUESSED)


def test_a_name_that_fits_several_architectures_is_refused_only_by_all_that_stand_in(engine, probe):
    answer, doubt = asked(engine, "acme/Mix-8B", enable_expert_parallel=True)
    assert isinstance(answer, Accepted)
    assert doubt == GUESSED
    assert asked(engine, "acme/Mix-8B", enable_chunked_prefill=False) == (CHUNKED, GUESSED)
    architectures = [json.loads((Path(one.model) / "config.json").read_text())["architectures"] for one in probe.asked]
    # The first that is accepted ends it, and those that cannot stand in are not asked.
    assert architectures[-4:] == [["MixForCausalLM"], ["MixMoeForCausalLM"]] * 2
    assert isinstance(asked(engine, "mix/Mix-7B", enable_expert_parallel=True)[0], Rejected)


def test_values_name_models_and_not_the_folders_they_are_put_into(engine, probe, monkeypatch):
    def refuse(question):
        draft = question.arguments.get("speculative_config", {}).get("model", "")
        seen = (Seen("speculative.model", draft), Seen("model.model", question.model), Seen("x.y", "/elsewhere/model"))
        return Rejected("rule", "no", "vllm/config.py:1", values=seen) if draft else Accepted({}, {})

    monkeypatch.setattr(probe, "one", refuse)
    answer, _ = asked(engine, speculative_config={"model": "ai21labs/Jamba-1.5-Mini"})
    assert [seen.value for seen in answer.values] == [
        "ai21labs/Jamba-1.5-Mini", "ai21labs/Jamba-tiny-dev", "/elsewhere/model",
    ]  # fmt: skip


@pytest.mark.parametrize("model", ["acme/broken-7b", "acme/novel-7b", "acme/unheard-of"])
def test_what_cannot_stand_in_is_an_unknown_model(engine, model):
    answer, _ = asked(engine, model)
    assert isinstance(answer, UnknownModel)


def test_a_models_own_configuration_needs_no_stand_in(probe, tmp_path):
    place = tmp_path / "configs" / "acme" / "own"
    place.mkdir(parents=True)
    (place / "config.json").write_text('{"architectures": ["JambaForCausalLM"], "hidden_size": 8}')
    engine = VllmEngine(Asked("h100-80gb", model_configs=tmp_path / "configs", suite=(tmp_path,)))
    answer, doubt = asked(engine, "acme/own")
    assert (answer.resolved, doubt) == ({"model.hidden_size": 8}, "")


def test_the_context_of_a_stand_in_refuses_nothing(engine):
    answer, doubt = asked(engine, max_model_len=65536)
    assert isinstance(answer, Accepted)
    assert doubt == STAND_IN


def test_flags_of_the_front_end_are_left_out_and_those_of_nobody_refused(engine):
    answer, _ = asked(engine, entry="serve", api_key="x")
    assert isinstance(answer, Accepted)
    answer, doubt = asked(engine, entry="serve", api_key="x", swap=4)
    assert isinstance(answer, Rejected)
    assert doubt == ""
    answer, _ = asked(engine, entry="LLM", api_key="x")
    assert isinstance(answer, Rejected)


def test_the_keywords_of_an_entry_are_read_in_the_source_and_a_command_line_has_the_servers_too(engine):
    own = {"max_model_len", "seed", "api_process_count"}
    assert engine.keywords(Question("m", {}, "LLM")) == own
    assert engine.keywords(Question("m", {}, "serve")) == own
    assert engine.keywords(Question("m", {}, "serve", argv=())) == own | {"api_key"}
    assert engine.keywords(Question("m", {}, "VllmConfig")) == frozenset()


def test_missing_files_are_no_refusals(engine):
    assert isinstance(asked(engine, config_format="mistral")[0], UnknownModel)


def test_what_the_probe_calls_a_refusal_stays_one_whatever_packages_its_message_lists(engine):
    answer, _ = asked(engine, backend=True)
    assert isinstance(answer, Rejected)
    assert answer.phase == "worker"


def test_a_speculative_model_is_found_like_others(engine, probe):
    asked(engine, speculative_config={"model": "ai21labs/Jamba-1.5-Mini", "num_speculative_tokens": 2})
    sent = probe.asked[-1].arguments["speculative_config"]
    assert (Path(sent["model"]) / "config.json").is_file()
    _, doubt = asked(engine, enable_chunked_prefill=False, speculative_config={"model": "acme/unheard-of"})
    assert doubt == STAND_IN


def test_an_engine_beyond_the_probe_is_said_plainly(engine, probe):
    probe.beyond = "vLLM 9.9 is beyond this probe: no platforms"
    with pytest.raises(InputError, match=r"(?s)beyond this probe.*--engine-python"):
        asked(engine)


def test_a_process_that_dies_while_models_are_found_costs_no_model(engine, probe, monkeypatch):
    configs, answer, deaths = probe.default_configs, probe.answer, ["one", "two"]

    def dying_configs(architectures, *, sizes=1):
        return (
            dict.fromkeys(architectures, "the process ended")
            if deaths and deaths.pop()
            else configs(architectures, sizes=sizes)
        )

    def dying_answer(questions):
        return [Crashed("the process ended")] * len(questions) if deaths and deaths.pop() else answer(questions)

    monkeypatch.setattr(probe, "default_configs", dying_configs)
    monkeypatch.setattr(probe, "answer", dying_answer)
    deaths[:] = ["one"]
    assert isinstance(asked(engine)[0], Accepted)
    deaths[:] = []
    monkeypatch.setattr(probe, "default_configs", configs)
    deaths[:] = ["two"]
    assert isinstance(asked(engine, "acme/Jamba-other")[0], Accepted)


def test_what_it_opened_it_closes(engine, probe):
    engine.close()
    assert probe.asked == ["closed"]


def test_the_words_of_a_command_line_are_asked_as_they_stand_and_drafts_by_their_folder(engine, probe):
    argv = ("--max-model-len", "4k", "--api-key", "x")
    engine.ask([Question("ai21labs/Jamba-tiny-dev", {"max_model_len": "4k", "api_key": "x"}, "serve", argv=argv)])
    assert [(one.argv, one.arguments) for one in probe.asked if one.entry == "serve"][-1] == (argv, {})
    draft = {"model": "ai21labs/Jamba-1.5-Mini", "num_speculative_tokens": 2}
    argv = ("--speculative-config", json.dumps(draft), "--seed", "1")
    typed = {"speculative_config": draft, "seed": 1}
    engine.ask([Question("ai21labs/Jamba-tiny-dev", typed, "serve", argv=argv)])
    *rest, spoken = probe.asked[-1].argv
    assert rest == ["--seed", "1", "--speculative-config"]
    assert Path(json.loads(spoken)["model"], "config.json").is_file()


def test_a_cache_that_cannot_be_written_is_one_clear_error(probe, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("STATICFIRE_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError, match=rf"{tmp_path}/file: cannot write there \(.*STATICFIRE_CACHE"):
        VllmEngine(Asked("h100-80gb"))


def test_whether_a_stand_in_holds_its_own_draft_is_not_known(engine, probe, monkeypatch):
    seen = (Seen("speculative.method", "mtp"),)
    refused = Rejected("rule", "Unsupported speculative method: 'mtp'", "vllm/speculative.py:1", values=seen)
    monkeypatch.setattr(probe, "one", lambda question: refused if question.arguments else Accepted({}, {}))
    answer, _ = asked(engine, speculative_config={"method": "mtp", "num_speculative_tokens": 1})
    assert isinstance(answer, UnknownModel)
    for other in ({"method": "mtp", "model": "ai21labs/Jamba-1.5-Mini"}, {"method": "eagle3"}):
        assert isinstance(asked(engine, speculative_config=other)[0], Rejected)


@pytest.mark.parametrize(
    ("model", "message", "drafts", "told"),
    [
        ("ai21labs/Jamba-tiny-GPTQ-4bit", "Unknown quantization method: marlin.", False, False),
        ("ai21labs/Jamba-tiny-FP8-dynamic", "The quantization does not fit.", False, False),
        ("ai21labs/Jamba-tiny-w4a16", "The quantization does not fit.", False, False),
        ("ai21labs/Jamba-tiny-dev", "Unknown quantization method: marlin.", False, True),
        ("ai21labs/Jamba-tiny-8b", "Unknown quantization method: marlin.", False, True),
        ("ai21labs/Jamba-tiny-GPTQ-4bit", "Chunked prefill is required.", False, True),
        ("ai21labs/Jamba-tiny-dev", "The draft has vocab_size=32000, and not 152064.", True, False),
        ("ai21labs/Jamba-tiny-dev", "The draft has vocab_size=32000, and not 152064.", False, True),
        ("ai21labs/Jamba-tiny-dev", "This draft needs a method.", True, True),
    ],
)
def test_what_only_a_models_own_configuration_says_is_no_refusal_of_its_stand_in(
    probe, tmp_path, monkeypatch, model, message, drafts, told
):
    (tmp_path / "models" / "registry.py").write_text(f'A = {{"JambaForCausalLM": _HfExamplesInfo("{model}")}}')
    refused = Rejected("rule", message, "vllm/x.py:1")
    monkeypatch.setattr(probe, "one", lambda question: refused if question.arguments else Accepted({}, {}))
    engine = VllmEngine(Asked("h100-80gb", suite=(tmp_path,)))
    typed = {"speculative_config": {"model": "a/draft", "method": "eagle3"}} if drafts else {"seed": 1}
    answer, _ = asked(engine, model, **typed)
    assert isinstance(answer, Rejected if told else UnknownModel)
