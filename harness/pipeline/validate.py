"""A pipeline against the limits of Buildkite and the rules of this project; every fault at once."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain

from staticfire.harness.errors import nearest
from staticfire.harness.pipeline import limits
from staticfire.harness.pipeline.steps import Block, Command, Group, Matrix, Pipeline, RetryRule, Step, jobs, needed

LOST_AGENT = frozenset({-1, 255})
"""Exit statuses that say that the agent went away; every other one may be a test that failed."""
LOST_REASONS = frozenset({"agent_stop", "agent_refused", "agent_incompatible", "stack_error"})


def faults(pipeline: Pipeline, most: int = limits.JOBS_PER_UPLOAD) -> list[str]:
    """What Buildkite would refuse or misunderstand, and what this project does not allow.

    Args:
        pipeline: To look at.
        most: Jobs that it may have: one upload's, or one build's.
    """
    found = [
        f"step {step.key!r}: {fault}" for step in chain(pipeline.steps, pipeline.leaves()) for fault in _step(step)
    ]
    found += _keys(pipeline)
    total = sum(jobs(step) for step in pipeline.leaves())
    if total > most:
        what = "one upload" if most == limits.JOBS_PER_UPLOAD else "one build"
        found.append(f"{total} jobs are more than {what} takes ({most})")
    return list(dict.fromkeys(found))


def cycle(needs: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Steps that wait for one another, the first of them twice; empty where there are none."""
    done: set[str] = set()
    for start in needs:
        path: list[str] = []
        stack: list[tuple[str, Iterator[str]]] = [(start, iter(needs.get(start, ())))]
        while stack and start not in done:
            key, rest = stack[-1]
            if key not in path:
                path.append(key)
            following = next((one for one in rest if one not in done), None)
            if following is None:
                done.add(key)
                path.pop()
                stack.pop()
            elif following in path:
                return (*path[path.index(following) :], following)
            else:
                stack.append((following, iter(needs.get(following, ()))))
    return ()


def _keys(pipeline: Pipeline) -> Iterator[str]:
    every = list(chain((step for step in pipeline.steps if isinstance(step, Group)), pipeline.leaves()))
    counts = Counter(step.key for step in every)
    yield from (f"step {key!r}: the key is used {count} times" for key, count in counts.items() if count > 1)
    for step in every:
        for key in needed(step):
            if key not in counts:
                yield f"step {step.key!r}: depends on {key!r}, which is no step.{nearest(key, counts)}"
    loop = cycle({step.key: needed(step) for step in every})
    if loop:
        yield f"steps wait for one another: {' -> '.join(loop)}"


def _step(step: Step) -> Iterator[str]:
    if not limits.KEY.fullmatch(step.key):
        yield "a key is made of letters, digits, _, - and :"
    if len(step.key) > limits.KEY_LENGTH:
        yield f"the key has {len(step.key)} characters; {limits.KEY_LENGTH} are allowed"
    if limits.UUID.fullmatch(step.key):
        yield "a key must not look like a UUID"
    match step:
        case Group() if not step.steps:
            yield "a group without steps"
        case Block() if not step.block.strip():
            yield "a block step without a label"
        case Command():
            yield from _command(step)


def _command(step: Command) -> Iterator[str]:
    if not any(line.strip() for line in step.commands):
        yield "no command"
    size = len("\n".join(step.commands).encode())
    if size > limits.COMMAND_BYTES:
        yield f"the commands have {size:,} bytes; {limits.COMMAND_BYTES:,} are allowed: use more shards"
    if step.timeout_in_minutes is not None and step.timeout_in_minutes < 1:
        yield "timeout_in_minutes must be at least 1"
    if step.skip is not None and len(step.skip) > limits.SKIP_LENGTH:
        yield f"the reason to skip has {len(step.skip)} characters; {limits.SKIP_LENGTH} are allowed"
    yield from _concurrency(step)
    if step.parallelism is not None and step.parallelism < 1:
        yield "parallelism must be at least 1"
    if step.matrix is not None:
        yield from _matrix(step.matrix, jobs(step))
        if step.parallelism is not None:
            yield "matrix and parallelism exclude each other"
    for rule in step.retry.automatic if step.retry else ():
        yield from _retry(rule)


def _concurrency(step: Command) -> Iterator[str]:
    if (step.concurrency is None) != (step.concurrency_group is None):
        yield "concurrency and concurrency_group need each other"
    if step.concurrency_method is not None and step.concurrency_group is None:
        yield "concurrency_method needs concurrency and concurrency_group"
    if step.concurrency is not None and step.concurrency < 1:
        yield "concurrency must be at least 1"
    if len(step.concurrency_group or "") > limits.CONCURRENCY_GROUP_LENGTH:
        yield f"concurrency_group is longer than {limits.CONCURRENCY_GROUP_LENGTH} characters"


def _retry(rule: RetryRule) -> Iterator[str]:
    if rule.limit is None or not 1 <= rule.limit <= limits.RETRY_LIMIT:
        yield f"an automatic retry needs a limit from 1 to {limits.RETRY_LIMIT}"
    statuses = rule.exit_status if isinstance(rule.exit_status, tuple) else (rule.exit_status,)
    lost = rule.exit_status is not None and all(status in LOST_AGENT for status in statuses)
    if not lost and not (rule.exit_status is None and rule.signal_reason in LOST_REASONS):
        yield "an automatic retry is for lost agents only: exit status -1 or 255, or a signal because the agent stopped"


def _matrix(matrix: Matrix, count: int) -> Iterator[str]:
    if len(matrix.setup) > limits.MATRIX_DIMENSIONS:
        yield f"a matrix has at most {limits.MATRIX_DIMENSIONS} dimensions"
    for name, values in matrix.setup.items():
        if len(values) > limits.MATRIX_ELEMENTS:
            yield f"matrix dimension {name!r} has {len(values)} elements; {limits.MATRIX_ELEMENTS} are allowed"
        if any(len(str(value).encode()) > limits.MATRIX_ELEMENT_BYTES for value in values):
            yield f"matrix dimension {name!r} has an element of more than {limits.MATRIX_ELEMENT_BYTES} bytes"
    if len(matrix.adjustments) > limits.MATRIX_ADJUSTMENTS:
        yield f"a matrix has at most {limits.MATRIX_ADJUSTMENTS} adjustments"
    if count > limits.MATRIX_JOBS:
        yield f"a matrix of {count} jobs; {limits.MATRIX_JOBS} are allowed: use shards"
