"""What a scan finds: sites that construct an engine, and the configurations each of them can have.

Plain values only; nothing here knows how they were read, and nothing imports an engine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Form = Literal[
    "vllm_runner",
    "LLM",
    "EngineArgs",
    "AsyncEngineArgs",
    "VllmConfig",
    "RemoteOpenAIServer",
    "compare_settings",
    "command",
    "shell",
    "yaml",
]


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that reading alone cannot tell.

    Attributes:
        reason: Why, as a short stable phrase that coverage tables group by (`parameter`, `call`, `environment`).
        detail: The source text, shortened.
        candidates: Every value it can have, where that much is known; empty when it could be anything.
    """

    reason: str
    detail: str = ""
    candidates: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a file: 1-based line, 1-based column."""

    path: str
    line: int
    column: int
    end_line: int = 0
    end_column: int = 0

    def __str__(self) -> str:
        """`path:line:column`."""
        return f"{self.path}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Typed:
    """One keyword that reaches the engine: its value, where it was written, and by which layer.

    Attributes:
        value: A plain value (str, int, float, bool, None, list, dict) or `Unknown`, possibly nested.
        where: Where it was written.
        layer: `call` at the site itself, `wrapper` for a default of the fixture or helper, `environment`.
    """

    value: Any
    where: Location
    layer: Literal["call", "wrapper", "environment"]


@dataclass(frozen=True, slots=True)
class Configuration:
    """One concrete configuration of a site.

    Attributes:
        model: Model id or path, or `Unknown`.
        keywords: Engine keyword (vLLM's `EngineArgs` name) -> how it was typed.
        params: The pytest parameter id that leads here, empty where there is none.
        complete: Whether every keyword that reaches the engine is named (no unknown splat).
    """

    model: Any
    keywords: Mapping[str, Typed]
    params: str = ""
    complete: bool = True

    @property
    def full(self) -> bool:
        """Whether model and every keyword are known."""
        return self.complete and not any(
            isinstance(value, Unknown) for value in (self.model, *(typed.value for typed in self.keywords.values()))
        )


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition under which the site runs at all (`skipif`, `xfail`, a device or version marker)."""

    kind: Literal["skipif", "skip", "xfail", "marker"]
    text: str
    where: Location
    decided: bool | None = None


@dataclass(frozen=True, slots=True)
class Negative:
    """The site stands under `pytest.raises`: the author expects a refusal."""

    exceptions: tuple[str, ...]
    match: str | None
    where: Location


@dataclass(frozen=True, slots=True)
class Site:
    """One place that constructs an engine.

    Attributes:
        where: The call, command or mapping.
        form: How it constructs.
        function: Qualified name of the enclosing test or helper, empty at module level.
        configurations: What it can construct; at least one.
        guards: Conditions under which it runs.
        negative: Set under `pytest.raises`.
        patched: Why its environment is not the engine's usual one (monkeypatched engine code), None if it is.
        truncated: How many further configurations were left out by the limit.
    """

    where: Location
    form: Form
    function: str
    configurations: tuple[Configuration, ...]
    guards: tuple[Guard, ...] = ()
    negative: Negative | None = None
    patched: str | None = None
    truncated: int = 0


@dataclass(frozen=True, slots=True)
class Unread:
    """A file, or a part of one, that was not read, and why."""

    path: str
    line: int
    why: str


@dataclass(frozen=True, slots=True)
class Scan:
    """Everything found under the given paths.

    Attributes:
        sites: In order of path and line.
        files: Files read, by kind (`python`, `shell`, `yaml`).
        unread: What was left out.
    """

    sites: tuple[Site, ...]
    files: Mapping[str, int] = field(default_factory=dict)
    unread: tuple[Unread, ...] = ()
