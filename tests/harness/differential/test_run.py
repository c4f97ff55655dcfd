"""Our rules beside a fake engine: one that says what our own resolver says, but for a fault that is planted."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from staticfire.engine.config.errors import ConfigError
from staticfire.engine.config.reader import model_info
from staticfire.engine.config.release import RELEASES, VLLM_RELEASES
from staticfire.engine.config.resolver import resolve
from staticfire.engine.config.typed import BESIDE_ENGINE_ARGS, IMPLEMENTED
from staticfire.harness.cli import main
from staticfire.harness.cli.flags import flags
from staticfire.harness.differential import report
from staticfire.harness.differential import run as runs
from staticfire.harness.differential.explained import Row
from staticfire.harness.differential.ours import CAPACITY, WEIGHED, Ours
from staticfire.harness.errors import InputError
from staticfire.harness.models import devices
from staticfire.harness.probe import registry
from staticfire.harness.probe.base import Accepted, Crashed, EngineIdentity, NotKnown, Rejected, Settled, Undecided

NEWEST = VLLM_RELEASES[-1]
H100 = devices.find("h100-80gb")
KEYWORDS = frozenset(IMPLEMENTED - BESIDE_ENGINE_ARGS)


@dataclass
class FakeEngine:
    """Answers by our resolver; `plant` may put another answer in its place."""

    plant: Callable[[Any, Any], Any] = lambda typed, outcome: outcome
    version: str = NEWEST.version
    asked: list[Any] = field(default_factory=list)
    where: str = "/fake"
    closed: bool = False

    @property
    def identity(self):
        return EngineIdentity("vllm", self.version, "digest", self.where)

    def answer(self, questions):
        self.asked += questions
        return [self.plant(dict(one.arguments), self._outcome(one)) for one in questions]

    def close(self):
        self.closed = True

    def _outcome(self, question):
        model = model_info(json.loads((Path(question.model) / "config.json").read_text()), "fake")
        try:
            found = resolve(question.arguments, model, H100, RELEASES[f"vllm=={self.version}"])
        except ConfigError as error:
            return Rejected("field", str(error), "vllm/fake.py:1")
        late = [one for one in found.violations if one.code in CAPACITY - WEIGHED]
        if any(one.code not in CAPACITY for one in (*found.violations, *found.limits)):
            return Rejected("rule", "refused", "vllm/fake.py:2")
        assert found.runtime is not None
        resolved = {name: value.value for name, value in found.values.items()}
        runtime = {f"cache.{name}": value for name, value in asdict(found.runtime).items() if "block_size" in name}
        if late:
            return Rejected("rule", "too small", "vllm/fake.py:3", phase="capacity", resolved=resolved)
        return Accepted(resolved, runtime, capacity=Settled({"blocks_at_most": found.runtime.num_gpu_blocks}))


def compared(engine, rows=(), examples=150, seed=0, **more):
    return runs.run(engine, H100, examples=examples, seed=seed, rows=rows, keywords=KEYWORDS, **more)


def refuse_two(typed, outcome):
    """A rule that we do not have: two keywords that clash."""
    if isinstance(outcome, Accepted) and {"max_num_batched_tokens", "max_num_seqs"} <= set(typed):
        return Rejected("rule", "these two clash", "vllm/config/planted.py:7")
    return outcome


ROW = Row(
    "planted",
    (NEWEST.name,),
    "theirs refuses",
    ("vllm/config/planted.py",),
    "It is planted.",
    when={"max_num_seqs": "typed"},
)


def test_two_sides_that_say_the_same_do_not_disagree():
    result = compared(FakeEngine())
    assert result.groups == ()
    assert result.counts("configuration")["accepted"] > 20
    assert result.counts("configuration")["refused"] > 5
    assert sum(one.values for one in result.comparisons) > 500


def test_a_planted_clash_is_found_and_shrunk_to_what_clashes():
    engine = FakeEngine(refuse_two)
    result = compared(engine, examples=600)
    (group,) = result.groups
    assert group.example.group == ("theirs refuses", "configuration", "vllm/config/planted.py:7")
    assert set(group.example.case.typed) == {"max_num_batched_tokens", "max_num_seqs"}
    assert group.example.theirs == "these two clash"
    assert group.members == len(result.explained.open)
    words = report.text(result, flags)
    assert f"staticfire explain {group.example.case.model} --like {NEWEST.name} --device h100-80gb " in words
    assert "--max-num-seqs" in words
    assert "these two clash" in words


def test_a_value_that_differs_is_found_with_its_name():
    def plant(typed, outcome):
        if isinstance(outcome, Accepted) and typed.get("enable_prefix_caching") is False:
            return Accepted(outcome.resolved, {**outcome.runtime, "cache.block_size": 7}, capacity=outcome.capacity)
        return outcome

    (group,) = compared(FakeEngine(plant)).groups
    assert group.example.group == ("values differ", "configuration", "runtime.block_size")
    assert group.example.case.typed == {"enable_prefix_caching": False}
    assert (group.example.theirs, group.example.ours != 7) == (7, True)


def test_a_value_that_was_typed_may_not_be_left_open_and_one_that_was_not_may():
    def plant(typed, outcome):
        if not isinstance(outcome, Accepted):
            return outcome
        return Accepted({**outcome.resolved, "scheduler.max_num_seqs": None}, outcome.runtime)

    groups = compared(FakeEngine(plant)).groups
    assert {group.example.because for group in groups} == {"scheduler.max_num_seqs"}
    assert all(set(group.example.case.typed) == {"max_num_seqs"} for group in groups)


@pytest.mark.parametrize("code", ["SF101", "SF202"])
def test_a_rule_of_ours_that_is_broken_shows(code):
    def without(typed, model, device, release):
        found = resolve(typed, model, device, release)
        return replace(found, violations=tuple(one for one in found.violations if one.code != code))

    result = compared(
        FakeEngine(), examples=500, ours=lambda models, device, release: Ours(models, device, release, without)
    )
    assert [group.example.kind for group in result.groups] == ["theirs refuses"]
    assert len(result.groups[0].example.case.typed) <= 2


def test_every_rule_that_we_break_together_is_a_disagreement_of_its_own():
    accepting = FakeEngine(lambda typed, outcome: Accepted())
    codes = {group.example.because for group in compared(accepting).groups}
    assert {"SF101", "SF202"} <= codes
    assert all("," not in code for code in codes)


@pytest.mark.parametrize(
    "silent",
    [
        Crashed("no such machine"),
        Undecided({}, NotKnown("no backend can be asked")),
    ],
)
def test_what_the_engine_does_not_know_is_counted_and_is_no_match(silent):
    result = compared(FakeEngine(lambda typed, outcome: silent))
    assert result.groups == ()
    ours = sum(count for (_, who, _), count in result.unknown().items() if who == "ours")
    assert result.counts("configuration") == {"not known": len(result.comparisons)}
    assert sum(result.unknown().values()) == len(result.comparisons) + ours
    assert "both accept 0, both refuse 0, differ 0, not known 150" in report.text(result, flags)


def test_room_that_is_not_known_is_no_match():
    def plant(typed, outcome):
        return Accepted(outcome.resolved, outcome.runtime) if isinstance(outcome, Accepted) else outcome

    result = compared(FakeEngine(plant))
    assert result.counts("capacity")["accepted"] == 0
    assert result.counts("capacity")["not known"] > 20


def test_a_row_takes_out_what_it_describes_and_nothing_else():
    assert compared(FakeEngine(refuse_two), [ROW], examples=600).groups == ()
    other = Row(**{**asdict(ROW), "says": "another message"})
    assert len(compared(FakeEngine(refuse_two), [other], examples=600).groups) == 1


def test_a_row_for_another_release_or_device_explains_nothing():
    for row in (
        Row(**{**asdict(ROW), "engines": ("vllm==0.28.0",)}),
        Row(**{**asdict(ROW), "devices": ("b200",)}),
    ):
        result = compared(FakeEngine(refuse_two), [row], examples=600)
        assert len(result.groups) == 1
        assert result.explained.counts == ()


def test_a_row_that_explains_nothing_in_a_full_run_is_stale(monkeypatch):
    monkeypatch.setattr(runs, "FULL", 150)
    result = compared(FakeEngine(), [ROW])
    assert result.stale == (ROW,)
    assert "planted" in report.text(result, flags)
    assert report.document(result, flags)["stale"] == ["planted"]
    monkeypatch.setattr(runs, "FULL", 151)
    assert compared(FakeEngine(), [ROW]).stale == ()


def test_the_same_seed_asks_the_same():
    one, other, third = FakeEngine(), FakeEngine(), FakeEngine()
    compared(one, seed=3)
    compared(other, seed=3)
    compared(third, seed=4)
    assert one.asked == other.asked
    assert one.asked != third.asked


def test_an_engine_between_two_releases_is_compared_with_the_older_one_and_one_before_all_is_refused():
    assert runs.release_of(FakeEngine(version="0.29.1rc1").identity).version == "0.28.0"
    assert runs.release_of(FakeEngine(version="1.0").identity) == NEWEST
    with pytest.raises(InputError, match=r"older than every release"):
        runs.release_of(FakeEngine(version="0.10.0").identity)


@pytest.fixture
def installed(monkeypatch):
    """Put a fake in the place of the installed engine."""

    def install(engine):
        monkeypatch.setitem(registry.ENGINES, "vllm", lambda options: engine)
        monkeypatch.setattr("staticfire.harness.check.engine_args.names", lambda folder, offline: KEYWORDS)
        monkeypatch.setattr("staticfire.harness.differential.explained.table", lambda: ())
        return engine

    return install


ASK = ["rules", "--against", "vllm", "--examples", "400"]


def test_the_verb_exits_0_where_nothing_is_open_and_1_where_something_is(installed, capsys):
    engine = installed(FakeEngine())
    assert main(ASK) == 0
    assert "No disagreement." in capsys.readouterr().out
    assert engine.closed
    installed(FakeEngine(refuse_two))
    assert main([*ASK, "--seed", "1", "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    (group,) = document["groups"]
    assert set(group["typed"]) == {"max_num_batched_tokens", "max_num_seqs"}
    assert document["seed"] == 1


def test_the_command_that_is_shown_shows_our_side(installed, capsys):
    installed(FakeEngine(refuse_two))
    main([*ASK, "--format", "json"])
    command = json.loads(capsys.readouterr().out)["groups"][0]["command"]
    assert command.startswith("staticfire explain ")
    assert main(command.split()[1:]) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["rules", "--seed", "1"],
        ["rules", "--against", "vllm", "--json"],
        ["rules", "--against", "nobody"],
        [*ASK, "--device", "h100"],
        [*ASK, "--examples", "0"],
    ],
)
def test_what_cannot_be_asked_so_is_a_fault_of_usage(installed, arguments, capsys):
    installed(FakeEngine())
    assert main(arguments) == 2
    assert capsys.readouterr().err
