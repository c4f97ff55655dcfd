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
from staticfire.engine.config.resolver import resolve, rule_faults, settle
from staticfire.engine.config.rules.registry import BY_CODE, RULES
from staticfire.engine.config.typed import read_typed
from staticfire.engine.config.unknown import PAGES, runtime_unknown
from staticfire.harness.differential.base import Answer, Case, Opinion

COMPUTED: Final = frozenset({"speculative_config"})
"""Options that the reference engine lacks, though every value beside them is computed as an engine has it."""
CAPACITY: Final = frozenset(rule.code for rule in RULES if rule.reads_runtime)
WEIGHED: Final = frozenset({"SF106", "SF109"})
"""Rules about the memory of the device, which nobody can ask an engine that has none."""
POOL: Final = "runtime.num_gpu_blocks"

Resolve = Callable[[Mapping[str, Any], ModelInfo, Device, EngineRelease], Resolution]


def limits(draft: Draft) -> tuple[str, ...]:
    """Limits that stand in the way of an answer about a settled draft."""
    return tuple(rule.code for rule in RULES if rule.limit and rule.check(draft))


class Ours:
    """Answers by the catalogue.

    A configuration that asks for what is not computed here is not known: the engine may have it, and then refuse the
    configuration for a reason of its own.
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
            if self._is_silent(case, model):
                return _unknown(["SF508"])
            return Answer(_refused(list(error.faults)), Opinion("not known", "the configuration is refused"))
        return self._judged(case, resolution)

    def _is_silent(self, case: Case, model: ModelInfo) -> bool:
        """Whether nothing is said of the engine's own class for the model, and so not of its keywords either."""
        sound, others, _ = read_typed(case.typed)
        draft = settle(Draft(sound, others, model, self._device, self._release))
        return any(rule.silences and rule.holds(self._release) and rule.check(draft) for rule in RULES)

    def _judged(self, case: Case, resolution: Resolution) -> Answer:
        faults, lacking = rule_faults(resolution), resolution.limits
        first = [fault for fault in faults if fault.code not in CAPACITY]
        last = [fault for fault in faults if fault.code in CAPACITY]
        if first:
            return Answer(_refused(first), Opinion("not known", "the configuration is refused"))
        if lacking:
            known = not {limit.fields[0] for limit in lacking} - COMPUTED
            return _unknown([limit.code for limit in lacking], self._values(case, resolution) if known else {})
        typed = frozenset(
            name for name, value in resolution.values.items() if value.source == "typed" and name in KEYWORD_OF
        )
        capacity = _refused(last) if last else Opinion("accepted")
        if (unknown := runtime_unknown(resolution.unknown)) and not last:
            capacity = Opinion("not known", "; ".join(dict.fromkeys(unknown.values())))
        return Answer(Opinion("accepted"), capacity, self._values(case, resolution), typed)

    @staticmethod
    def _values(case: Case, resolution: Resolution) -> dict[str, Any]:
        values = {name: value.value for name, value in resolution.values.items() if name not in resolution.unknown}
        late = asdict(resolution.runtime) if resolution.runtime is not None else {}
        late = {} if PAGES in resolution.unknown else late
        late = {name: value for name, value in late.items() if name not in resolution.unknown}
        if not {"num_gpu_blocks_override", "kv_cache_memory_bytes"} & set(case.typed):
            late.pop("num_gpu_blocks", None)  # what the device leaves is an estimate on both sides
        return {**values, **{f"runtime.{name}": value for name, value in late.items()}}


def _unknown(codes: list[str], values: Mapping[str, Any] | None = None) -> Answer:
    """Say nothing of a configuration that asks for what is not computed here."""
    because = Opinion("not known", ", ".join(f"{code} {BY_CODE[code].name}" for code in dict.fromkeys(codes)))
    return Answer(because, because, values or {})


def _refused(faults: list[Fault]) -> Opinion:
    reasons: dict[str, str] = {}
    for fault in faults:
        reasons.setdefault(fault.code or f"{fault.field}: {fault.type}", fault.message)
    return Opinion("refused", message="; ".join(reasons.values()), reasons=tuple(reasons.items()))
