"""An installed vLLM: its own response class and the method that applies it, driven in its own interpreter."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from staticfire.harness.errors import InputError
from staticfire.harness.probe.vllm.process import EngineBeyondError, EngineDiedError, EngineProcess, Limits
from staticfire.harness.sync.contract.base import (
    About,
    Delivered,
    Field,
    Message,
    RoundTrip,
    Run,
    SubjectDiedError,
)
from staticfire.harness.sync.contract.draw import allows_none, plainest

AGENT: Final = (Path(__file__).resolve().parents[2], "sync.contract.agent.main")
"""All of the harness is laid beside it, since it starts as the probe's agent does; it imports little of that."""
LIMITS: Final = Limits(start=300, question=30)
USUAL: Final[Mapping[str, Any]] = {"int": 16, "float": 1.5, "str": "usual", "bool": False}


class VllmSubject:
    """The engine, and the process that runs its code; started again where it died.

    Attributes:
        about: What was found.
    """

    about: About

    def __init__(self, python: str, limits: Limits = LIMITS, say: Callable[[str], None] = lambda _: None) -> None:
        """Start the interpreter and find the response.

        Args:
            python: The interpreter that has vLLM.
            limits: How long to wait.
            say: Told what is waited for.

        Raises:
            InputError: There is no vLLM, it does not start, or its response is beyond this contract.
        """
        self._python, self._limits, self._say = python, limits, say
        self._folder = tempfile.TemporaryDirectory(prefix="staticfire-contract-")
        self._process: EngineProcess | None = None
        try:
            self._process = self._started()
            self.about = _about(self._process.hello)
        except EngineBeyondError as error:
            self.close()
            if error.absent:
                raise InputError(f"{python}: vLLM cannot be imported there: {error}") from error
            raise InputError(f"{python}: this vLLM's ready response is beyond the contract: {error}") from error
        except EngineDiedError as error:
            self.close()
            raise InputError(f"{python}: {error}") from error
        except BaseException:
            self.close()
            raise

    def deliver(self, runs: Sequence[Run]) -> list[Delivered]:
        """See `Subject.deliver`."""
        asked = [{"messages": list(run.messages), "typed": dict(run.typed)} for run in runs]
        answer = self._ask({"want": "deliver", "runs": asked})
        return [Delivered(tuple(one["states"]), one["error"]) for one in answer["delivered"]]

    def round_trip(self, message: Message) -> RoundTrip:
        """See `Subject.round_trip`."""
        answer = self._ask({"want": "round trip", "message": message})
        return RoundTrip(tuple(answer["lost"]), answer["error"])

    def close(self) -> None:
        """End the process and whatever it started."""
        if self._process is not None:
            self._process.kill()
            self._process = None
        self._folder.cleanup()

    def _started(self) -> EngineProcess:
        return EngineProcess(self._python, {}, Path(self._folder.name), self._limits, say=self._say, agent=AGENT)

    def _ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Ask, and once more in a new process, for the first may have been ended by somebody else."""
        said = ""
        for _ in range(2):
            try:
                if self._process is None:
                    self._process = self._started()
                return self._process.ask(question)
            except (EngineDiedError, EngineBeyondError) as error:
                said = str(error)
                if self._process is not None:
                    self._process.kill()
                    self._process = None
        raise SubjectDiedError(said)


def _about(hello: Mapping[str, Any]) -> About:
    lines = hello["lines"]
    return About(
        engine=f"{hello['engine']} {hello['version']}",
        response=hello["response"],
        defined_at=hello["defined_at"],
        applies=hello["applies"],
        applied_at=hello["applied_at"],
        fields=tuple(Field(one["name"], one["type"], _usual(one), lines.get(one["name"])) for one in hello["fields"]),
        key=hello["key"],
        settable=hello["settable"],
        defaults=hello["defaults"],
    )


def _usual(one: Mapping[str, Any]) -> Any:
    """What an engine says there as a rule: the declared default, else the plainest of its type."""
    if "default" in one:
        return one["default"]
    if allows_none(one["type"]):
        return None
    kind = one["type"]["is"]
    return USUAL[kind] if kind in USUAL else next(iter(plainest(one["type"])), None)
