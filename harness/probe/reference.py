"""The probe of our own engine: its resolver, asked directly. Imports no torch."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from staticfire import __version__
from staticfire.engine.config.device import CPU, Device
from staticfire.engine.config.errors import ConfigError, Fault
from staticfire.engine.config.model import ModelInfo
from staticfire.engine.config.options import KNOWN
from staticfire.engine.config.reader import model_info
from staticfire.engine.config.resolver import resolve, rule_faults
from staticfire.engine.config.rules.registry import BY_CODE, RULES
from staticfire.engine.config.runnable import running_faults
from staticfire.engine.config.typed import IMPLEMENTED, read_typed
from staticfire.harness.errors import InputError
from staticfire.harness.models import catalog
from staticfire.harness.probe.base import (
    BEYOND,
    Accepted,
    Crashed,
    EngineIdentity,
    NotKnown,
    Outcome,
    Question,
    Rejected,
    Settled,
    Undecided,
)

_LIMITS: Final = frozenset({"data-parallel-in-one-process"})


class ReferenceProbe:
    """Answers for the reference engine, on one device.

    A configuration is accepted when no rule is broken and the engine can also run it, not only resolve it.
    """

    def __init__(self, device: Device = CPU) -> None:
        """Answer for a device."""
        self.device = device
        self._models: dict[str, ModelInfo] = {}

    def ask(self, model: str, config: Mapping[str, Any]) -> Outcome:
        """Judge one configuration; see `Probe.ask`."""
        try:
            info = self._info(model)
            resolution = resolve(config, info, self.device)
        except ConfigError as error:
            return _rejected("field", error.faults, str(error))
        faults = [*rule_faults(resolution), *running_faults(resolution, info)]
        if faults or resolution.config is None:
            return _rejected("rule", faults, "; ".join(fault.message for fault in faults))
        resolved = {name: value.value for name, value in resolution.values.items()}
        if resolution.runtime is None:
            return Undecided(resolved, NotKnown("the resolver computed nothing of the worker's start-up"))
        blocks = Settled({"num_gpu_blocks": resolution.runtime.num_gpu_blocks})
        return Accepted(resolved, asdict(resolution.runtime), capacity=blocks)

    def ask_within_limits(self, model: str, config: Mapping[str, Any]) -> Outcome:
        """Judge one configuration as its author's: what vLLM takes and only this engine does not run is no fault.

        Returns:
            `Crashed` where nothing but this engine's limits speaks against it; a refusal names no limit.

        Raises:
            InputError: No such model, or one whose configuration lacks something.
        """
        try:
            info = self._info(model)
        except ConfigError as error:
            told = [fault.message for fault in error.faults]
            if any(fault.field != "model_type" or not isinstance(fault.value, str) for fault in error.faults):
                raise InputError("; ".join(told)) from error
            return _beyond(told)
        try:
            resolution = resolve(config, info, self.device)
        except ConfigError as error:
            kind, faults = "field", error.faults
        else:
            kind, faults = "rule", (*rule_faults(resolution), *running_faults(resolution, info))
        real = [fault for fault in faults if not _is_limit(fault)]
        if real:
            return _rejected(kind, real, "; ".join(fault.message for fault in real))
        return _beyond([fault.message for fault in faults]) if faults else self.ask(model, config)

    @property
    def identity(self) -> EngineIdentity:
        """Our own engine, at the version of this package."""
        return EngineIdentity("reference", __version__, __version__, "staticfire.engine")

    def answer(self, questions: Sequence[Question]) -> list[Outcome]:
        """Judge configurations; see `EngineProbe.answer`."""
        return [self._answered(question) for question in questions]

    def close(self) -> None:
        """Nothing was started."""

    def _answered(self, question: Question) -> Outcome:
        if question.argv is not None:
            return Crashed("the reference engine has no command line of a server", lasting=True)
        try:
            return self.ask(question.model, question.arguments)
        except InputError as error:
            return Crashed(str(error), lasting=True)

    def field_fault(self, keyword: str, value: Any) -> str | None:
        """What is wrong with one keyword or its value; see `Probe.field_fault`."""
        _, _, faults = read_typed({keyword: value})
        return "; ".join(fault.message for fault in faults) or None

    def rule_name(self, code: str) -> str | None:
        """The readable name of a rule; None for an unknown code."""
        return BY_CODE[code].name if code in BY_CODE else None

    def rule_codes(self) -> tuple[str, ...]:
        """Every code that refuses, sorted; silent rewrites refuse nothing."""
        return tuple(sorted(rule.code for rule in RULES))

    def chain(self, model: str, config: Mapping[str, Any]) -> tuple[str, ...]:
        """How the values that the broken rules read came to be, causes before effects; empty where none is broken."""
        try:
            resolution = resolve(config, self._info(model), self.device)
        except ConfigError:
            return ()
        return tuple(dict.fromkeys(link for violation in resolution.violations for link in violation.chain))

    def keywords(self) -> frozenset[str]:
        """Every keyword that it knows, whether it heeds it or not."""
        return frozenset((*IMPLEMENTED, *KNOWN))

    def messages(self) -> tuple[str, ...]:
        """What its rules say when they refuse: their names and summaries, and the head of every refusal."""
        return ("Configuration refused: {}", *(text for rule in RULES for text in (rule.name, rule.summary)))

    def _info(self, model: str) -> ModelInfo:
        if model not in self._models:
            found = catalog.find(model)
            self._models[model] = model_info(found.hf, found.name)
        return self._models[model]


def _is_limit(fault: Fault) -> bool:
    """Whether a fault says what this engine lacks, and nothing of the configuration."""
    return fault.type in _LIMITS or fault.type.endswith(("-not-runnable", "-not-supported"))


def _beyond(messages: Sequence[str]) -> Crashed:
    return Crashed(f"{BEYOND}: {'; '.join(dict.fromkeys(messages))}", lasting=True)


def _rejected(kind: Any, faults: list[Fault] | tuple[Fault, ...], message: str) -> Rejected:
    names = [fault.code or fault.type for fault in faults]
    origin = ", ".join(dict.fromkeys(fault.type for fault in faults))
    return Rejected(kind, message, origin, tuple(sorted(set(names))))
