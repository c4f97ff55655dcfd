"""The answer of our own rules and arithmetic to a drawn case, for one release and one device."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Final

from staticfire.engine.config.device import Device
from staticfire.engine.config.draft import KEYWORD_OF, Draft
from staticfire.engine.config.errors import ConfigError, Fault
from staticfire.engine.config.model import ModelInfo
from staticfire.engine.config.release import EngineRelease
from staticfire.engine.config.resolution import Resolution
from staticfire.engine.config.resolver import resolve, rule_faults
from staticfire.engine.config.rules.registry import BY_CODE, RULES
from staticfire.engine.config.unknown import PAGES
from staticfire.harness.differential.base import Answer, Case, Opinion

LIMITS: Final = "SF5"
"""How the codes of those rules begin that only say what the reference engine does not have."""
LAYOUTS: Final = frozenset({"SF310", "SF507"})
"""Limits of where the reference engine runs, which leave every value and every other rule as they are."""
COMPUTED: Final = frozenset({"speculative_config"})
"""Options that the reference engine lacks, though every value beside them is computed as an engine has it."""
UNFORESEEN: Final = frozenset({"SF508"})
"""Limits beside which no other rule says anything of the engine that is imitated."""
CAPACITY: Final = frozenset(rule.code for rule in RULES if rule.reads_runtime)
WEIGHED: Final = frozenset({"SF106", "SF109"})
"""Rules about the memory of the device, which nobody can ask an engine that has none."""
POOL: Final = "runtime.num_gpu_blocks"

Resolve = Callable[[Mapping[str, Any], ModelInfo, Device, EngineRelease], Resolution]


def is_limit(code: str) -> bool:
    """Whether a rule says what the reference engine lacks, and so nothing of another engine."""
    return code.startswith(LIMITS) or code in LAYOUTS


def limits(draft: Draft) -> tuple[str, ...]:
    """Limits that stand in the way of an answer about a settled draft."""
    return tuple(rule.code for rule in RULES if _blocks(rule.code) and rule.check(draft))


def _blocks(code: str) -> bool:
    return is_limit(code) and code not in LAYOUTS


class Ours:
    """Answers by the catalogue.

    A configuration of which nothing is broken but a limit of the reference engine is not known: another engine may
    have what is lacking, and then refuse it for a reason of its own.
    """

    def __init__(
        self, models: Mapping[str, ModelInfo], device: Device, release: EngineRelease, resolve: Resolve = resolve
    ) -> None:
        """Answer for a device and a release.

        Args:
            models: Name -> model.
            device: The device.
            release: The engine that is imitated.
            resolve: The resolver, replaceable to plant a fault.
        """
        self._models = models
        self._device = device
        self._release = release
        self._resolve = resolve

    def answer(self, case: Case) -> Answer:
        """Judge one case."""
        model = self._models[case.model]
        try:
            resolution = self._resolve(case.typed, model, self._device, self._release)
        except ConfigError as error:
            return self._judged(case, list(error.faults), None)
        return self._judged(case, rule_faults(resolution), resolution)

    def _judged(self, case: Case, faults: list[Fault], resolution: Resolution | None) -> Answer:
        real = [fault for fault in faults if not is_limit(fault.code or "")]
        lacking = [fault for fault in faults if _blocks(fault.code or "")]
        first = [fault for fault in real if fault.code not in CAPACITY]
        last = [fault for fault in real if fault.code in CAPACITY]
        if first and not {fault.code for fault in lacking} & UNFORESEEN:
            return Answer(_refused(first), Opinion("not known", "the configuration is refused"))
        if lacking or resolution is None:
            codes = dict.fromkeys(fault.code or "" for fault in lacking)
            unknown = Opinion(
                "not known", ", ".join(f"{code} {BY_CODE[code].name}" for code in codes) or "no resolution"
            )
            if resolution is None or {fault.field for fault in lacking} - COMPUTED:
                return Answer(unknown, unknown)
            return Answer(unknown, unknown, self._values(case, resolution))
        typed = frozenset(
            name for name, value in resolution.values.items() if value.source == "typed" and name in KEYWORD_OF
        )
        capacity = _refused(last) if last else Opinion("accepted")
        if resolution.unknown and not last:
            capacity = Opinion("not known", "; ".join(dict.fromkeys(resolution.unknown.values())))
        return Answer(Opinion("accepted"), capacity, self._values(case, resolution), typed)

    @staticmethod
    def _values(case: Case, resolution: Resolution) -> dict[str, Any]:
        values = {name: value.value for name, value in resolution.values.items()}
        late = asdict(resolution.runtime) if resolution.runtime is not None else {}
        late = {} if PAGES in resolution.unknown else late
        late = {name: value for name, value in late.items() if name not in resolution.unknown}
        if not {"num_gpu_blocks_override", "kv_cache_memory_bytes"} & set(case.typed):
            late.pop("num_gpu_blocks", None)  # what the device leaves is an estimate on both sides
        return {**values, **{f"runtime.{name}": value for name, value in late.items()}}


def _refused(faults: list[Fault]) -> Opinion:
    reasons: dict[str, str] = {}
    for fault in faults:
        reasons.setdefault(fault.code or f"{fault.field}: {fault.type}", fault.message)
    return Opinion("refused", message="; ".join(reasons.values()), reasons=tuple(reasons.items()))
