"""Hypothesis strategies for suites of engines: cells, configurations, prompts, ready responses, sequence layouts.

Configurations are valid by construction: they are drawn from a matrix under its constraints, so nothing is filtered
away. Numbers are drawn around the sizes where engines go wrong: blocks and chunks, one below, at and one above.
Nothing here draws tensors: a strategy gives shapes, lengths and seeds, and a test makes its tensors from them.
"""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

from hypothesis import currently_in_test_context, note
from hypothesis import example as explicit
from hypothesis import strategies as st

from staticfire.harness.errors import InputError
from staticfire.harness.matrix.cell import UNSET, Cell
from staticfire.harness.matrix.document import same

Test = TypeVar("Test", bound=Callable[..., Any])
MAX_PROMPT: Final = 512


def cells(matrix: str | Path, *, verdict: str | None = "valid", **axes: Any) -> st.SearchStrategy[Cell]:
    """A cell of a matrix; `verdict` and axes as in `@pytest.mark.matrix`, a path as seen from the current folder.

    A failing example says how to run the cell by itself.

    Raises:
        InputError: The matrix or the selection cannot be used.
    """
    named, chosen = _cells(matrix, verdict, axes)
    return st.sampled_from(chosen).map(
        lambda cell: _told(cell, f"staticfire run {shlex.quote(named)} --cell {cell.id}")
    )


def rows_as_examples(
    matrix: str | Path,
    *,
    argument: str = "cell",
    example: Mapping[str, Any] | None = None,
    verdict: str | None = "valid",
    **axes: Any,
) -> Callable[[Test], Test]:
    """Make every row of a matrix an explicit example of a property, beside what Hypothesis draws.

    A hundred drawn examples reach most pairs of values and miss some; the rows of the array reach all of them. What
    varies inside a row is drawn: the property takes a seed, a prompt or a layout besides, and `example` has its value
    for the rows.

    Args:
        matrix: A file or a name.
        argument: Name of the test's argument that takes the cell.
        example: The other arguments of the test -> their value in the rows.
        verdict: Which cells.
        **axes: Selected as in `@pytest.mark.matrix`.

    Raises:
        InputError: The matrix or the selection cannot be used.
    """
    _, chosen = _cells(matrix, verdict, axes)

    def decorate(test: Test) -> Test:
        for cell in reversed(chosen):
            test = explicit(**{**(example or {}), argument: cell}).via(f"row {cell.id}")(test)
        return test

    return decorate


@st.composite
def configurations(draw: st.DrawFn, /, matrix: str | Path = "hybrid", **axes: Any) -> tuple[str, dict[str, Any]]:
    """A model and engine keywords that the reference engine accepts: any valid combination of a matrix's axes.

    Not only the rows of the covering array: every combination that no constraint of the matrix excludes. A failing
    example prints the `staticfire explain` line that shows how the configuration resolves.
    """
    space = _space(str(matrix), tuple(sorted(axes.items())))
    document, indexed = _document(str(matrix))
    row: dict[int, int] = {}
    for axis in draw(st.permutations(range(len(space.domains)))):
        allowed = [value for value in _simplest_first(indexed, axis, space) if space.feasible({**row, axis: value})]
        # as many draws in every row: a shorter one would count as simpler than one whose values are left unset
        row[axis] = allowed[draw(st.integers(0, len(space.domains[axis]) - 1)) % len(allowed)]
    typed = {**document.fixed, **indexed.row(row)}
    model = str(typed.pop("model"))
    keywords = {name: value for name, value in typed.items() if value != UNSET}
    _tell(explain_line(model, keywords))
    return model, keywords


def prompts(
    vocabulary: int = 512, *, block: int = 16, chunk: int = 64, longest: int = MAX_PROMPT, first: int = 3
) -> st.SearchStrategy[list[int]]:
    """A prompt as token ids, its length around a multiple of the block or of the chunk more often than not.

    Args:
        vocabulary: Tokens are below this.
        block: Tokens of a cache block, as it is at run time.
        chunk: Tokens of a prefill chunk.
        longest: Most tokens.
        first: Lowest token drawn; those below it are special in most tokenizers.
    """
    lengths = _lengths(block, chunk, longest)
    tokens = st.integers(first, vocabulary - 1)
    return lengths.flatmap(lambda length: st.lists(tokens, min_size=length, max_size=length))


@st.composite
def prompt_families(
    draw: st.DrawFn,
    vocabulary: int = 512,
    *,
    block: int = 16,
    most: int = 4,
    longest: int = MAX_PROMPT,
    first: int = 3,
) -> list[list[int]]:
    """Prompts that share beginnings of drawn lengths, as a prefix cache meets them; some are the beginning and no more.

    Args:
        draw: Hypothesis's.
        vocabulary: Tokens are below this.
        block: Tokens of a cache block, as it is at run time.
        most: Most prompts; at least two are drawn, unless it is 1.
        longest: Most tokens of each.
        first: Lowest token drawn.
    """
    stem = draw(prompts(vocabulary, block=block, longest=longest, first=first))
    found = [stem]
    for _ in range(draw(st.integers(1, most - 1)) if most > 1 else 0):
        shared = draw(st.integers(0, len(stem)))
        tokens = st.lists(st.integers(first, vocabulary - 1), min_size=shared == 0, max_size=longest - shared)
        found.append(stem[:shared] + draw(tokens))
    return found


def _lengths(block: int, chunk: int, longest: int) -> st.SearchStrategy[int]:
    edges = sorted(
        {
            length
            for size in (block, chunk)
            for multiple in range(1, longest // size + 1)
            for length in (multiple * size - 1, multiple * size, multiple * size + 1)
            if 1 <= length <= longest
        }
    )
    anything = st.integers(1, longest)  # first, so that what fails at any length shrinks to one token
    return st.one_of(anything, st.sampled_from(edges)) if edges else anything


@dataclass(frozen=True, slots=True)
class SequenceLayout:
    """Sequences packed into one batch, as a kernel sees them.

    Attributes:
        lengths: Tokens of each sequence in this step; 0 is a slot that computes nothing.
        starts: Tokens of each that were computed before.
        slots: Which state each has; all different.
        total_slots: States that there are; those not named must stay as they are.
        seed: For the tensors that a test makes.
    """

    lengths: tuple[int, ...]
    starts: tuple[int, ...]
    slots: tuple[int, ...]
    total_slots: int
    seed: int

    @property
    def cu_seqlens(self) -> tuple[int, ...]:
        """Where each sequence begins in the batch, and where the last one ends."""
        found = [0]
        for length in self.lengths:
            found.append(found[-1] + length)
        return tuple(found)


@st.composite
def sequence_layouts(
    draw: st.DrawFn,
    *,
    sequences: int = 6,
    block: int = 16,
    longest: int = 96,
    spare_slots: int = 3,
    empty: bool = True,
) -> SequenceLayout:
    """A mixed batch: decodes of one token, prefills around blocks, chunks that go on, empty segments, unused slots."""
    kinds = [st.just(1), _lengths(block, block, longest), *([st.just(0)] if empty else [])]
    lengths = tuple(draw(st.lists(st.one_of(kinds), min_size=1, max_size=sequences)))
    starts = tuple(draw(st.one_of(st.just(0), _lengths(block, block, longest))) for _ in lengths)
    total = len(lengths) + draw(st.integers(0, spare_slots))
    slots = tuple(draw(st.permutations(range(total)))[: len(lengths)])
    return SequenceLayout(lengths, starts, slots, total, draw(st.integers(0, 2**31 - 1)))


def ready_responses(
    models: Sequence[str] = ("jamba-tiny", "llama-tiny"), matrix: str = "hybrid"
) -> st.SearchStrategy[Any]:
    """What an engine answers once it is ready, for a configuration that it accepts."""
    return configurations(matrix, model=tuple(models)).map(_ready)


def _ready(drawn: tuple[str, Mapping[str, Any]]) -> Any:
    from staticfire.engine.config import accept, model_info  # noqa: PLC0415 -- only where they are drawn
    from staticfire.engine.ready.make import make_ready  # noqa: PLC0415 -- the same
    from staticfire.engine.worker.settle import settle_worker  # noqa: PLC0415 -- the same
    from staticfire.harness.models import catalog  # noqa: PLC0415 -- the same

    model, keywords = drawn
    resolved = accept(keywords, model_info(catalog.load(model).config, model))
    return make_ready(settle_worker(resolved), engine_index=0)


def explain_line(model: str, keywords: Mapping[str, Any]) -> str:
    """The command that explains a configuration."""
    flags: list[str] = []
    for name, value in keywords.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            flags.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            flags += [f"--{flag}", str(value)]
    return shlex.join(["staticfire", "explain", model, "--like", "reference", *flags])


def _simplest_first(indexed: Any, axis: int, space: Any) -> list[int]:
    """Values in the order in which a failing example shrinks: unset, then as the file lists them."""
    name = indexed.names[axis]
    listed = list(indexed.document.axes[name])
    values = indexed.values[axis]
    return sorted(space.domains[axis], key=lambda at: (values[at] != UNSET, _place(listed, values[at])))


def _place(listed: Sequence[Any], value: Any) -> int:
    return next(at for at, known in enumerate(listed) if same(known, value))


def _told(cell: Cell, command: str) -> Cell:
    _tell(command)
    return cell


def _tell(command: str) -> None:
    if currently_in_test_context():  # not in `find` or `.example()`
        note(f"reproduce: {command}")


def _cells(matrix: str | Path, verdict: str | None, axes: Mapping[str, Any]) -> tuple[str, tuple[Cell, ...]]:
    import pytest  # noqa: PLC0415 -- only to read a selection as the marker does

    from staticfire.harness.plugin.marker import cells_of  # noqa: PLC0415 -- costs pytest

    keywords = {**axes, **({} if verdict is None else {"verdict": verdict})}
    source, chosen = cells_of(pytest.mark.matrix(str(matrix), **keywords).mark, Path())
    return source.file, chosen


@cache
def _document(matrix: str) -> tuple[Any, Any]:
    from staticfire.harness.matrix import load  # noqa: PLC0415 -- costs pydantic
    from staticfire.harness.matrix.expand import Indexed  # noqa: PLC0415 -- the same

    document = load(matrix).document
    return document, Indexed(document)


@cache
def _space(matrix: str, axes: tuple[tuple[str, Any], ...]) -> Any:
    from staticfire.harness.matrix.solve import Space  # noqa: PLC0415 -- with the rest
    from staticfire.harness.plugin.marker import meets  # noqa: PLC0415 -- costs pytest

    document, indexed = _document(matrix)
    space = indexed.space(document.constraints)
    wanted = dict(axes)
    unknown = sorted(set(wanted) - set(indexed.names))
    if unknown:
        raise InputError(f"{document.where}: no axis named {unknown[0]!r}. Axes: {', '.join(document.axes)}.")
    domains: list[Iterable[int]] = [
        [at for at in domain if name not in wanted or meets(values[at], wanted[name])]
        for name, values, domain in zip(indexed.names, indexed.values, space.domains, strict=True)
    ]
    narrowed = Space([list(domain) for domain in domains], space.clauses)
    if not narrowed.feasible({}):
        raise InputError(f"{document.where}: no valid configuration has {wanted!r}")
    return narrowed
