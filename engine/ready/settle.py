"""The front end's side of the ready response: the one place where the answers of the engines meet."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, Final

import msgspec

from staticfire.engine.config.engine_config import EngineConfig, ResolvedConfig, Runtime
from staticfire.engine.ready.errors import ReadyError
from staticfire.engine.ready.merge import LEAST, RESOLVED, Values, merge, told
from staticfire.engine.ready.response import TABLE, Merge, ReadyResponse

SECTIONS: Final = tuple(field.name for field in fields(ResolvedConfig))
RUNTIME: Final = tuple(f"runtime.{field.name}" for field in fields(Runtime))
"""What only a worker can say, in the order of `Runtime`."""
UNKNOWN: Final[Values] = dict.fromkeys(RUNTIME, 0) | {"runtime.mamba_page_size_padded": None}
"""Run-time values that nobody reported and that nothing stands in for."""
FIELD_OF: Final = {
    target: name
    for name, travels in TABLE.items()
    for target in travels.targets
    if travels.merge is not Merge.AS_RESOLVED
}
"""`section.field` that engines settle -> field of the ready response."""
ELSEWHERE: Final = tuple(path for path in FIELD_OF if path not in RUNTIME)
"""What engines settle in the sections that the front end resolved."""
REPORTED: Final = tuple(FIELD_OF.get(path, "") for path in RUNTIME)
MOVED: Final = tuple(FIELD_OF[path] for path in ELSEWHERE)
ALL_REPORTED: Final = frozenset(REPORTED)

_sections: Final = attrgetter(*SECTIONS)
_elsewhere: Final = attrgetter(*ELSEWHERE)
_resolved: Final = attrgetter(*(TABLE[name].targets[0] for name in RESOLVED))
_bounds: Final = tuple(
    next((ELSEWHERE.index(path) for path in TABLE[name].targets if path in ELSEWHERE), None) for name in LEAST
)
"""Of each field of which the smallest counts: where the front end's own bound stands; None where it has none."""


class Settled(msgspec.Struct, frozen=True):
    """What the front end knows once every engine has answered.

    Attributes:
        config: The front end's own configuration: several engines in one, by the merge of each field.
        engines: Engine index -> that engine's configuration.
        dp_stats_address: Where the coordinator publishes the load of the engines; None without one.
        versions: Engine index -> version of its software, None where it did not say.
        unreported: Engine index -> what an engine must settle and did not report. There the configurations hold what
            was resolved, or 0 where resolving gives nothing: such a value may be wrong.
    """

    config: EngineConfig
    engines: Mapping[int, EngineConfig]
    dp_stats_address: str | None
    versions: Mapping[int, str | None]
    unreported: Mapping[int, tuple[str, ...]]


def settle(resolved: ResolvedConfig, responses: Iterable[ReadyResponse]) -> Settled:
    """Make the front end's configuration out of what was resolved and what the engines answered.

    Pure: nothing that is passed in changes. The order of the engines does not matter; an engine that answers again
    replaces what it answered before.

    Args:
        resolved: What the front end resolved.
        responses: The answers, one engine or several.

    Returns:
        The settled configurations.

    Raises:
        ReadyError: Nobody answered, engines disagree, one answers what was not resolved, or `resolved` lacks a field.
    """
    latest = {response.engine_index: response for response in responses}
    if not latest:
        raise ReadyError("no engine answered, so there is nothing to settle")
    ordered = [latest[index] for index in sorted(latest)]
    base = _Base(resolved)
    answers = {response.engine_index: told(response) for response in ordered}
    merged = merge(
        ordered, answers, base.resolved, [None if column is None else base.elsewhere[column] for column in _bounds]
    )
    return Settled(
        config=base.config(merged),
        engines={index: base.config(values) for index, values in answers.items()},
        dp_stats_address=merged.get("dp_stats_address"),
        versions={index: values.get("version") for index, values in answers.items()},
        unreported={index: lacking for index, values in answers.items() if (lacking := _lacking(values))},
    )


def _lacking(values: Values) -> tuple[str, ...]:
    """What an engine must settle and did not report."""
    if values.keys() >= ALL_REPORTED:
        return ()
    return tuple([path for path, name in zip(RUNTIME, REPORTED, strict=True) if name not in values])


class _Base:
    """What the front end has before anybody answered.

    Raises:
        ReadyError: The configuration, which may be of a class of somebody else's, lacks a field.
    """

    __slots__ = ("_made", "elsewhere", "resolved", "runtime", "sections")

    def __init__(self, resolved: Any) -> None:
        try:
            sections = _sections(resolved)
            self.elsewhere = _elsewhere(resolved)
            self.resolved = _resolved(resolved)
            cache, length = resolved.cache, resolved.model.max_model_len
            unreported = UNKNOWN | {
                "runtime.block_size": cache.block_size,
                "runtime.mamba_block_size": cache.mamba_block_size,
                "runtime.num_gpu_blocks": cache.num_gpu_blocks_override or 0,
                "runtime.max_model_len": length,
            }
        except AttributeError as error:
            raise ReadyError(
                f"the front end's configuration, a {type(resolved).__qualname__}, cannot hold what the engines "
                f"settled: {error}"
            ) from error
        self.sections = dict(zip(SECTIONS, sections, strict=True))
        self.runtime = tuple(unreported.values())
        self._made: dict[tuple[Any, ...], EngineConfig] = {}

    def config(self, values: Values) -> EngineConfig:
        """A configuration with `values` in their places; one for all who ask for the same."""
        runtime: Any = (*map(values.get, REPORTED, self.runtime),)
        elsewhere = tuple(map(values.get, MOVED, self.elsewhere))
        made = self._made.get((runtime, elsewhere))
        if made is None:
            made = EngineConfig(**self._sections(elsewhere), runtime=Runtime(*runtime))
            self._made[runtime, elsewhere] = made
        return made

    def _sections(self, elsewhere: tuple[Any, ...]) -> dict[str, Any]:
        if elsewhere == self.elsewhere:
            return self.sections
        sections = dict(self.sections)
        for path, value, own in zip(ELSEWHERE, elsewhere, self.elsewhere, strict=True):
            if value == own:
                continue
            section, _, field = path.partition(".")
            try:
                sections[section] = replace(sections[section], **{field: value})
            except TypeError as error:
                kind = type(sections[section]).__qualname__
                raise ReadyError(f"the front end's {section}, a {kind}, cannot take {field}={value!r}") from error
        return sections
