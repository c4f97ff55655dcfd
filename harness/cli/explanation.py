"""One explained configuration, and its machine-readable form (`docs/schemas/explain.json`)."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from staticfire.engine.config.device import Device
from staticfire.engine.config.model import ModelInfo
from staticfire.engine.config.release import EngineRelease
from staticfire.engine.config.repair import apply
from staticfire.engine.config.resolution import Fix, Resolution, Value, Violation
from staticfire.engine.config.rules.registry import BY_CODE
from staticfire.engine.config.runnable import running_faults
from staticfire.harness.cli.flags import flags

SCHEMA_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Explanation:
    """What `explain` has to say.

    Attributes:
        asked: The model as it was named on the command line.
        where: Where its `config.json` was found.
        model: The model.
        release: The engine it is judged for.
        device: The device it is judged for.
        named: Whether the release and the device were named on the command line.
        typed: What was typed.
        resolution: What came of it.
        fixes: Verified repairs, best first; each repairs everything.
    """

    asked: str
    where: str
    model: ModelInfo
    release: EngineRelease
    device: Device
    named: tuple[bool, bool]
    typed: Mapping[str, Any]
    resolution: Resolution
    fixes: tuple[Fix, ...]

    def command(self, fix: Fix) -> str:
        """The whole command line after a repair, quoted for a shell."""
        like = ["--like", self.release.name] if self.named[0] else []
        device = ["--device", self.device.name] if self.named[1] else []
        words = ["staticfire", "explain", self.asked, *like, *device, *flags(apply(self.typed, fix))]
        return shlex.join(words)

    def notes(self) -> tuple[str, ...]:
        """Remarks of the resolution, and what stands between it and a run on the reference engine."""
        not_yet = tuple(f"not runnable yet: {fault.message}" for fault in running_faults(self.resolution, self.model))
        return (*self.resolution.notes, *not_yet)

    def runtime(self) -> dict[str, Any] | None:
        """The run-time values, None for one that is not known; None where none is."""
        runtime, unknown = self.resolution.runtime, self.resolution.unknown
        if runtime is None:
            return None
        return {name: None if name in unknown else value for name, value in asdict(runtime).items()}

    def as_json(self) -> dict[str, Any]:
        """The versioned form for machines."""
        resolution = self.resolution
        fixes = [self._fix_json(fix) for fix in self.fixes]
        return {
            "schema": SCHEMA_VERSION,
            "model": self.model.name,
            "architecture": self.model.architecture,
            "config": self.where,
            "engine": self.release.name,
            "device": self.device.name,
            "accepted": resolution.accepted,
            "verdict": resolution.verdict,
            "values": {
                field: _value_json(value, resolution.unknown.get(field)) for field, value in resolution.values.items()
            },
            "runtime": self.runtime(),
            "unknown": dict(resolution.unknown),
            "arithmetic": list(resolution.arithmetic),
            "rewrites": [asdict(rewrite) for rewrite in resolution.rewrites],
            "notes": list(self.notes()),
            "violations": [
                {**_broken_json(one), "advice": BY_CODE[one.code].fix, "fix": fixes[0] if fixes else None}
                for one in resolution.violations
            ],
            "limits": [_broken_json(limit) for limit in resolution.limits],
            "fixes": fixes,
        }

    def _fix_json(self, fix: Fix) -> dict[str, Any]:
        return {
            "set": dict(fix.set),
            "drop": list(fix.drop),
            "flags": flags(fix.set),
            "command": self.command(fix),
        }


def _broken_json(broken: Violation) -> dict[str, Any]:
    return {
        "code": broken.code,
        "name": broken.name,
        "message": broken.message,
        "fields": list(broken.fields),
        "chain": list(broken.chain),
    }


def _value_json(value: Value, unknown: str | None) -> dict[str, Any]:
    if unknown is not None:
        return {"value": None, "source": value.source, "because": unknown}
    document = {"value": value.value, "source": value.source}
    return document if value.because is None else {**document, "because": value.because}
