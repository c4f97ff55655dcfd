"""The client against a toy engine: verdicts, notes, the cache, and which engine it was."""

import os

import pytest

from staticfire.harness.errors import InputError
from staticfire.harness.probe.base import Accepted, Crashed, Question, Rejected
from staticfire.harness.probe.registry import Options, open_probe
from staticfire.harness.probe.vllm.probe import prune


def test_accepted_has_the_resolved_values_and_none_that_change_from_run_to_run(probe, model):
    outcome = probe().ask(Question(model(), {"block_size": 32}))
    assert isinstance(outcome, Accepted)
    assert outcome.resolved["cache.block_size"] == 32
    assert "cache.started" not in outcome.resolved


def test_the_device_is_presented_with_its_capability_and_its_compiled_modules_stand_in(probe, model):
    outcome = probe().ask(Question(model()))
    assert isinstance(outcome, Accepted)
    assert outcome.resolved["devices"] == 8


def test_more_ranks_than_a_machine_has_is_no_fault_of_the_configuration(probe, model):
    outcome = probe().ask(Question(model(), {"tensor_parallel_size": 64}))
    assert isinstance(outcome, Accepted)
    assert outcome.resolved["devices"] == 64


def test_a_refusal_says_the_engines_own_words_and_where(probe, model):
    outcome = probe().ask(Question(model(), {"act": "refuse"}))
    assert isinstance(outcome, Rejected)
    assert (outcome.kind, outcome.message, outcome.phase) == ("rule", "Chunked prefill is required.", "front end")
    assert outcome.origin.startswith("vllm/engine/arg_utils.py:")


def test_an_unknown_keyword_is_refused_as_a_field(probe, model):
    outcome = probe().ask(Question(model(), {"block_sise": 32}))
    assert isinstance(outcome, Rejected)
    assert outcome.kind == "field"
    assert "block_sise" in outcome.message


@pytest.mark.parametrize(
    ("name", "known"),
    [("VLLM_ABCDEF", False), ("VLLM_CACHE_ROOT", True), ("VLLM_LOGGING_LEVEL", True), ("OTHER", True)],
)
def test_the_engine_judges_the_names_of_variables_that_are_not_passed(name, known, probe, model):
    one = probe()
    typed = Question(model(), {"fail_on_environ_validation": True}, environment={name: "1"})
    assert isinstance(one.ask(typed), Accepted if known else Rejected)
    plain = Question(model(), environment={name: "1"})
    assert isinstance(one.ask(plain), Accepted)
    refused = Question(model(), {"fail_on_environ_validation": True, "act": "refuse"}, environment={name: "1"})
    assert isinstance(one.ask(refused), Rejected)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"act": "stumble"}, "AttributeError: 'NoneType'"),
        ({"act": "machine"}, "no NVIDIA driver"),
    ],
)
def test_what_is_not_a_decision_about_the_configuration_is_no_refusal(probe, model, arguments, words):
    outcome = probe().ask(Question(model(), arguments))
    assert isinstance(outcome, Crashed)
    assert words in outcome.detail
    assert outcome.lasting


def test_a_model_class_that_cannot_be_inspected_is_never_a_refusal(probe, model):
    one = probe(use_cache=False)
    broken = Question(model("BrokenForCausalLM"))
    first, second = one.answer([broken, broken])
    again = one.ask(broken)  # the engine remembers the failure and only says that it failed
    for outcome in (first, second, again):
        assert isinstance(outcome, Crashed)
        assert "BrokenForCausalLM" in outcome.detail
        assert "nothing works here" in outcome.detail


def test_a_model_that_imports_an_absent_package_is_inspected_all_the_same(probe, model):
    assert isinstance(probe().ask(Question(model("NeedyForCausalLM"))), Accepted)


def test_a_folder_without_a_configuration_is_a_crash(probe, tmp_path):
    outcome = probe().ask(Question(str(tmp_path / "nowhere")))
    assert isinstance(outcome, Crashed)


def test_warnings_are_notes_of_every_question_that_causes_them(probe, model):
    question = Question(model(), {"act": "warn"})
    one = probe(use_cache=False)
    for outcome in (one.ask(question), one.ask(question)):
        assert isinstance(outcome, Accepted)
        assert [note.message for note in outcome.notes] == ["block_size is ignored", "said once a process"]
        assert outcome.notes[0].origin.startswith("vllm/engine/arg_utils.py:")


def test_a_questions_environment_holds_for_it_alone(probe, model, monkeypatch):
    monkeypatch.setenv("VLLM_USE_V2_MODEL_RUNNER", "of the shell")
    one = probe(use_cache=False)
    with_it, without = one.answer(
        [
            Question(model(), {"act": "environment"}, environment={"VLLM_USE_V2_MODEL_RUNNER": "of the site"}),
            Question(model(), {"act": "environment"}),
        ]
    )
    assert isinstance(with_it, Rejected)
    assert isinstance(without, Rejected)
    assert with_it.message == "TOY_MODE is 'of the site'"
    assert without.message == "TOY_MODE is None"


def test_what_the_engine_prints_does_not_disturb_its_answers(probe, model):
    outcomes = probe().answer([Question(model(), {"act": "noise", "block_size": size}) for size in (16, 32, 48)])
    sizes = [outcome.resolved["cache.block_size"] for outcome in outcomes if isinstance(outcome, Accepted)]
    assert sizes == [16, 32, 48]


def test_an_answer_is_asked_for_once(probe, model, monkeypatch):
    first = probe()
    question = Question(model(), {"block_size": 12})
    outcome = first.ask(question)
    assert isinstance(outcome, Rejected)
    second = probe()

    def no_start():
        raise AssertionError("an engine was started")

    monkeypatch.setattr(second._pool, "_make", no_start)
    assert second.ask(question) == outcome


def test_the_same_question_twice_in_one_call_is_asked_once(probe, model, monkeypatch):
    one = probe()
    asked = []
    real = one._pool.ask

    def counted(questions, groups):
        asked.extend(questions)
        return real(questions, groups)

    monkeypatch.setattr(one._pool, "ask", counted)
    outcomes = one.answer([Question(model(), {"block_size": 8})] * 5)
    assert len(asked) == 1
    assert len({id(outcome) for outcome in outcomes}) == 1


def test_arguments_that_json_has_no_word_for_cost_only_their_own_answer(probe, model):
    good, bad = Question(model(), {"block_size": 16}), Question(model(), {"block_size": object()})
    first, second, third = probe().answer([bad, good, bad])
    assert isinstance(second, Accepted)
    for outcome in (first, third):
        assert isinstance(outcome, Crashed)
        assert "cannot be handed to the engine" in outcome.detail


def test_no_cache_neither_reads_nor_keeps(probe, model):
    question = Question(model(), {"block_size": 8})
    assert probe(use_cache=False)._cache is None
    probe(use_cache=False).ask(question)
    one = probe()
    assert one._cache.get([one._key(question)]) == {}


def test_another_engine_text_device_or_model_is_another_question(probe, model, toy):
    question = Question(model(), {"block_size": 8})
    keys = {probe()._key(question), probe(device="a100-80gb")._key(question)}
    keys.add(probe()._key(Question(model("NeedyForCausalLM"), {"block_size": 8})))
    keys.add(probe()._key(Question(model(), {"block_size": 16})))
    keys.add(probe()._key(Question(model(), {"block_size": 8}, "LLM")))
    keys.add(probe()._key(Question(model(), {"block_size": 8}, environment={"VLLM_MLA_DISABLE": "1"})))
    withheld = Question(model(), {"block_size": 8}, environment={"VLLM_X": "1", "VLLM_CACHE_ROOT": "/tmp/x"})
    assert probe()._key(withheld) == probe()._key(question), "what the engine is not asked with makes no difference"
    source = toy.parent / "tree" / "vllm" / "engine" / "arg_utils.py"
    source.write_text(source.read_text() + "\n# changed\n")
    keys.add(probe()._key(question))
    assert len(keys) == 7


def test_folders_of_engines_that_are_asked_no_more_are_removed(tmp_path):
    folders = [tmp_path / f"vllm-{number:02}" for number in range(20)]
    for number, folder in enumerate(folders):
        folder.mkdir()
        os.utime(folder, (number, number))
    (tmp_path / "models").mkdir()
    prune(folders[0], keep=5)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["models", "vllm-00", "vllm-16", "vllm-17", "vllm-18", "vllm-19"]


def test_architectures_of_the_registry_are_listed(probe):
    assert set(probe().architectures()) == {"PlainForCausalLM", "BrokenForCausalLM", "NeedyForCausalLM"}


@pytest.mark.parametrize(
    ("name", "words"),
    [("/nowhere/python", "there is no such file"), ("/bin/true", "no Python interpreter")],
)
def test_what_is_no_interpreter_is_said_at_once(name, words):
    from staticfire.harness.models import devices

    with pytest.raises(InputError, match=words):
        open_probe("vllm", Options(devices.find("h100-80gb"), name))


def test_an_interpreter_without_the_engine_names_the_way_out(tmp_path):
    import sys

    from staticfire.harness.models import devices

    with pytest.raises(InputError, match=r"has no vLLM .*--engine-python"):
        open_probe("vllm", Options(devices.find("h100-80gb"), sys.executable))


def test_an_engine_that_cannot_be_presented_with_a_device_is_beyond_the_probe(probe, model, toy):
    (toy.parent / "tree" / "vllm" / "platforms" / "cuda.py").write_text("raise KeyError('other platforms now')\n")
    one = probe()
    outcomes = one.answer([Question(model(), {"block_size": size}) for size in (8, 16)])
    assert all(isinstance(outcome, Crashed) for outcome in outcomes)
    assert one.beyond is not None
    assert "9.9.9 is beyond this probe" in one.beyond or "source is beyond this probe" in one.beyond
    assert "other platforms now" in one.beyond
