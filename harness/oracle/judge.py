"""Judge one cell: refuse what must be refused, run what must run, compare with the oracle and with its group."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from traceback import format_exception
from typing import Any

import numpy as np

from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.config.errors import ConfigError
from staticfire.engine.errors import EngineError
from staticfire.harness.files import default_cache_dir
from staticfire.harness.matrix.cell import Cell
from staticfire.harness.models import catalog
from staticfire.harness.models.make import ensure
from staticfire.harness.oracle.base import PASSING, Grade, Noise, Oracle, Question, Trace, worst
from staticfire.harness.oracle.compare import Comparison, Expected, Finding, Flips, Observed, compare, routing_flips
from staticfire.harness.oracle.evidence import Evidence, Token, evidence
from staticfire.harness.oracle.judgement import Judgement
from staticfire.harness.oracle.laws import Tolerance, against_itself, against_oracle
from staticfire.harness.oracle.plan import EVERYTHING, KEPT_BACK, Planned, plan
from staticfire.harness.oracle.references import Canonical, CanonicalError, CanonicalReferences, OracleReferences
from staticfire.harness.oracle.registry import ORACLES
from staticfire.harness.oracle.relations.base import Answered, Outcome, Relation, Trial
from staticfire.harness.oracle.relations.registry import RELATIONS
from staticfire.harness.oracle.store import Store
from staticfire.harness.oracle.subject import Answer, Subject, in_one_process
from staticfire.harness.probe.base import Crashed, Rejected, Undecided
from staticfire.harness.probe.reference import ReferenceProbe
from staticfire.harness.run.backends import AXIS
from staticfire.harness.run.record import rerun_command

FAILURES_SHOWN = 5
"""More are shown where more runs failed: of each run the first."""


def judge(cell: Cell, *, cache_dir: Path | None = None, matrix_file: str | None = None) -> Judgement:
    """Judge one cell.

    Args:
        cell: The cell.
        cache_dir: Folder of checkpoints and oracle answers; the user's cache when None.
        matrix_file: Where the cell comes from, for the command that reruns it.

    Returns:
        The verdict, with figures, and for a failure the evidence.

    Raises:
        OracleError: The oracle cannot judge this cell.
        EngineError: The engine broke down.
    """
    if cell.verdict == "refused":
        return judge_refusal(cell, cache_dir)
    checkpoint = ensure(cell.model, cache_dir)
    try:
        subject = Subject(checkpoint, cell.config)
    except ConfigError as error:
        return Judgement("refused unexpectedly", rule=_rules(error), detail={"message": str(error)})
    folder = (cache_dir or default_cache_dir()) / "oracle"
    with subject:
        return _judge_run(cell, subject, checkpoint, _store(folder), matrix_file)


def judge_refusal(cell: Cell, cache_dir: Path | None = None) -> Judgement:
    """The engine must refuse this cell by exactly the rules it names, and its probe must foretell it.

    The probe answers for every model; where the model can be run, the engine itself is started as well.
    """
    foretold = ReferenceProbe().ask(cell.model, cell.config)
    if isinstance(foretold, Rejected) and catalog.load(cell.model).tiny is not None:
        try:
            Subject(ensure(cell.model, cache_dir), cell.config).llm.close()
        except ConfigError as error:
            return _refusal(cell, _codes(error), str(error))
        return Judgement("accepted unexpectedly", detail={"message": f"though the probe says: {foretold.message}"})
    if isinstance(foretold, Rejected):
        return _refusal(cell, foretold.rules, foretold.message)
    if isinstance(foretold, Crashed):
        raise EngineError(f"the engine's probe gave no answer: {foretold.detail}")
    if isinstance(foretold, Undecided):
        raise EngineError(f"the engine's probe does not know what the worker says: {foretold.worker.because}")
    return Judgement("accepted unexpectedly", detail={"expected": "+".join(sorted(cell.rules)), "reason": cell.reason})


def _refusal(cell: Cell, found: Sequence[str], message: str) -> Judgement:
    rule = "+".join(sorted(found))
    if set(found) == set(cell.rules):
        return Judgement("refused as expected", rule=rule, detail={"message": message})
    detail = {"message": message, "expected": "+".join(sorted(cell.rules))}
    return Judgement("refused unexpectedly", rule=rule, detail=detail)


def question_of(checkpoint: Path, config: EngineConfig, max_tokens: int = EVERYTHING.max_tokens) -> Question:
    """What the oracle is asked about a configuration: only what may change the outputs."""
    info, cache_config = config.model.info, config.cache
    recurrent = bool(info.recurrent_layers)
    return Question(
        checkpoint=checkpoint,
        dtype=config.model.dtype,
        quantization=config.quantization.method if info.num_experts else None,
        max_tokens=max_tokens,
        ssm_dtype=cache_config.mamba_ssm_cache_dtype if recurrent else None,
        conv_dtype=cache_config.mamba_cache_dtype if recurrent else None,
        kv_dtype=cache_config.cache_dtype if info.attention_layers else None,
    )


@cache
def _oracle(name: str) -> Oracle:
    """One oracle a process: it keeps its models."""
    return ORACLES[name]()


@cache
def _store(folder: Path) -> Store:
    """One store a process: it keeps answers in memory."""
    return Store(folder)


@dataclass(slots=True)
class _Tally:
    """Everything compared against one reference."""

    grades: list[Grade] = field(default_factory=list)
    max_delta: float = 0.0
    rms: float = 0.0
    flips: int = 0
    forced_again: int = 0
    skipped: int = 0
    because: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)

    def add(self, comparison: Comparison) -> None:
        self.grades.append(comparison.grade)
        self.max_delta = float(np.fmax(self.max_delta, comparison.max_delta))
        self.rms = float(np.fmax(self.rms, comparison.rms))
        self.flips += comparison.flips
        self.because |= {finding.kind for finding in comparison.findings}

    def figures(self) -> dict[str, Any]:
        return {
            "grade": worst(self.grades) if self.grades else None,
            "because": sorted(self.because),
            "prompts": len(self.grades),
            "max_delta": self.max_delta,
            "rms": self.rms,
            "routing_flips": self.flips,
            "forced_again": self.forced_again,
            "skipped": self.skipped,
        }


def _judge_run(cell: Cell, subject: Subject, checkpoint: Path, store: Store, matrix_file: str | None) -> Judgement:
    started = time.perf_counter()
    config = subject.config
    workload = cell.workload
    prompts = plan(subject.llm.tokenizer, config, workload)
    question = question_of(checkpoint, config, workload.max_tokens)
    oracle = OracleReferences(_oracle("transformers"), store, question)
    traces = dict(zip((p.tokens for p in prompts), oracle.traces([p.tokens for p in prompts]), strict=True))
    asked = time.perf_counter()
    noise = Noise.of([trace.noise for trace in traces.values()])
    trial = _cold(cell, checkpoint, subject, prompts, traces, oracle, against_oracle(question, noise))
    ran = time.perf_counter()
    promised = [relation for relation in RELATIONS if relation.applies(config) and relation.name in workload.relations]
    left_out = {relation.name: why for relation in promised if (why := relation.out_of_reach(config)) is not None}
    outcomes, traceback = _related([relation for relation in promised if relation.name not in left_out], trial)
    related = time.perf_counter()
    vacuous = {name: outcome.vacuous for name, outcome in outcomes.items() if outcome.vacuous}
    canonical = CanonicalReferences(store, checkpoint, cell.config, question.max_tokens)
    try:
        group = dict(zip(traces, canonical.answers(list(traces.values())), strict=True))
    except CanonicalError as error:
        group, vacuous["canonical"] = {}, str(error)
    answered = [*trial.cold, *(a for outcome in outcomes.values() for a in outcome.answered)]
    bench = _Bench(subject, question, oracle, traces, group, noise)
    tallies = bench.compare(answered)
    broken = [failure for name, outcome in outcomes.items() for failure in _broken(name, outcome)]
    grades = [grade for tally in tallies.values() for grade in tally.grades]
    grade: Grade = "wrong" if broken else worst(grades)
    passed = grade in PASSING and not vacuous
    detail: dict[str, Any] = {
        "prompts": len(prompts),
        "noise": asdict(bench.noise),
        **{name: tally.figures() for name, tally in tallies.items()},
        "conditions": {name: dict(outcome.figures) for name, outcome in outcomes.items()},
        "seconds": {
            "oracle": round(asked - started, 3),
            "cold": round(ran - asked, 3),
            "relations": round(related - ran, 3),
            "comparison": round(time.perf_counter() - related, 3),
        },
    }
    if config.model.info.num_experts and not in_one_process(cell.config):
        left_out["routing"] = "experts are recorded in one process only"
    if left_out:
        detail["left_out"] = left_out
    if any(tally.notes for tally in tallies.values()):
        detail["notes"] = [note for tally in tallies.values() for note in tally.notes][:FAILURES_SHOWN]
    if not passed:
        failures = [*broken, *(failure for tally in tallies.values() for failure in tally.failures)]
        detail["vacuous"] = vacuous
        detail["failures"] = _shown(sorted(failures, key=_order))
        detail["failed_comparisons"] = len(failures)
        if traceback is not None:
            detail["traceback"] = traceback
        detail["rerun"] = rerun_command(matrix_file or "FILE", cell.id, cell.fixed.get(AXIS))
    return Judgement("passed" if passed else "failed", grade, detail=detail)


def _cold(
    cell: Cell,
    checkpoint: Path,
    subject: Subject,
    prompts: Sequence[Planned],
    traces: Mapping[tuple[int, ...], Trace],
    oracle: OracleReferences,
    allowed: Tolerance,
) -> Trial:
    continuations = {tokens: trace.tokens for tokens, trace in traces.items()}
    kept_back = [prompt for prompt in prompts if prompt.family in KEPT_BACK]
    trial = Trial(
        checkpoint, cell.config, subject, (), continuations, cell.workload.max_tokens, kept_back, oracle, allowed
    )
    cold = [prompt for prompt in prompts if prompt.family not in KEPT_BACK]
    return replace(trial, cold=trial.answer("cold", subject, cold))


def _related(relations: Sequence[Relation], trial: Trial) -> tuple[dict[str, Outcome], str | None]:
    """What each relation brings back, and the traceback of an engine that broke down in one: it ends there."""
    outcomes: dict[str, Outcome] = {}
    for relation in relations:
        try:
            outcomes[relation.name] = relation.check(trial)
        except (EngineError, RuntimeError) as error:  # RuntimeError: torch's, the scheduler's and the cache's
            message = f"the engine broke down: {type(error).__name__}: {error}"
            outcomes[relation.name] = Outcome((), None, {}, [message])
            return outcomes, "".join(format_exception(error))
    return outcomes, None


def _order(failure: Mapping[str, Any]) -> int:
    """The cold run's failures come first, those of a relation after those of relations before it."""
    relation = str(failure["run"]).split(",")[0]
    return next((i for i, known in enumerate(RELATIONS) if known.name == relation), -1)


def _shown(failures: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first failure of each run, then others until there are enough; in their order."""
    runs = [failure["run"] for failure in failures]
    first = {runs.index(run) for run in runs}
    others = [i for i in range(len(failures)) if i not in first][: max(0, FAILURES_SHOWN - len(first))]
    return [failures[i] for i in sorted({*first, *others})]


def _broken(name: str, outcome: Outcome) -> list[dict[str, Any]]:
    return [
        {"against": f"the relation {name}", "grade": "wrong", "run": name, "message": message}
        for message in outcome.broken
    ]


@dataclass(frozen=True, slots=True)
class _Bench:
    """Compares answers with both references."""

    subject: Subject
    question: Question
    oracle: OracleReferences
    traces: Mapping[tuple[int, ...], Trace]
    group: Mapping[tuple[int, ...], Canonical]
    noise: Noise

    def compare(self, answered: Sequence[Answered]) -> dict[str, _Tally]:
        tallies = {"transformers": _Tally(), "canonical": _Tally()}
        for index, item in enumerate(answered):
            self._against_oracle(index, item, tallies["transformers"])
            self._against_canonical(index, item, tallies["canonical"])
        return tallies

    def _against_oracle(self, index: int, item: Answered, tally: _Tally) -> None:
        observed = item.answer.observed
        if item.expected is None:
            expected, flips = self._expected(self.traces[item.prompt.tokens], observed)
        else:
            expected, flips = item.expected, None
        allowed = against_oracle(self.question, self.noise)
        comparison = compare(expected, observed, allowed, flips)
        tally.forced_again += item.answer.forced_again
        self._tally(tally, "transformers", index, item, expected, comparison)

    def _expected(self, trace: Trace, observed: Observed) -> tuple[Expected, Flips | None]:
        """The oracle's side, under the engine's own routing where that is known and differs."""
        routing = observed.routing
        usable = routing.size and routing.shape == trace.routing.shape and bool((routing >= 0).all())
        if not usable or np.array_equal(np.sort(routing, -1), np.sort(trace.routing, -1)):
            return Expected(trace.tokens, trace.tokens, trace.rows), None
        replay = self.oracle.replay(trace, routing)
        return Expected(trace.tokens, trace.tokens, replay.rows), routing_flips(replay.router_logits, routing)

    def _against_canonical(self, index: int, item: Answered, tally: _Tally) -> None:
        canonical = self.group.get(item.prompt.tokens)
        if canonical is None or item.expected is not None:
            return
        observed = item.answer.observed
        one, other = canonical.routing, observed.routing
        allowed = against_itself(self.question, self.noise)
        unseen = not other.size  # where the engine is in another process
        flipped = not unseen and (one.shape != other.shape or not np.array_equal(np.sort(one, -1), np.sort(other, -1)))
        if flipped and allowed.margin > 0:  # under law 1 nothing may flip
            tally.skipped += 1
            return
        comparison = compare(canonical.expected, observed, allowed)
        self._tally(tally, "canonical", index, item, canonical.expected, comparison)

    def _tally(
        self, tally: _Tally, against: str, index: int, item: Answered, expected: Expected, comparison: Comparison
    ) -> None:
        tally.add(comparison)
        first = comparison.first
        if first is None:
            return
        where = f"{item.run}, prompt {index} ({item.prompt.name})"
        if comparison.grade in PASSING:
            tally.notes.append(f"{against}: {where}, position {first.position}: {first.message}")
            return
        seen = evidence(expected, item.answer.observed, first, self.subject.text)
        tally.failures.append(_failure(against, index, item, comparison, first, seen))


def _failure(
    against: str, index: int, item: Answered, comparison: Comparison, first: Finding, seen: Evidence
) -> dict[str, Any]:
    return {
        "against": against,
        "grade": comparison.grade,
        "run": item.run,
        "prompt": index,
        "prompt_name": item.prompt.name,
        "prompt_tokens": len(item.prompt.tokens),
        "position": first.position,
        "message": first.message,
        "first_differing_token": seen.differs,
        "expected_token": _token(seen.expected),
        "observed_token": _token(seen.observed),
        "logprobs": list(seen.around),
        "max_delta": comparison.max_delta,
        "rms": comparison.rms,
        "stats": _stats(item.answer),
    }


def _token(token: Token | None) -> dict[str, Any] | None:
    return {"id": token[0], "text": token[1]} if token is not None else None


def _stats(answer: Answer) -> dict[str, Any]:
    stats = answer.stats
    return {
        "cached_tokens": stats.num_cached_tokens,
        "restored_states": stats.restored_states,
        "preemptions": stats.num_preemptions,
        "chunks": [list(chunk) for chunk in stats.chunks[:8]],
    }


def _codes(error: ConfigError) -> list[str]:
    return sorted({fault.code or fault.type for fault in error.faults})


def _rules(error: ConfigError) -> str:
    return "+".join(_codes(error))
