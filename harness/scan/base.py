"""What a scan finds: sites that construct an engine, and the configurations each of them can have.

Plain values only; nothing here knows how they were read, and nothing imports an engine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from staticfire.harness.scan.budget import Budget

Form = Literal[
    "vllm_runner",
    "LLM",
    "EngineArgs",
    "AsyncEngineArgs",
    "VllmConfig",
    "RemoteOpenAIServer",
    "compare_settings",
    "wrapper",
    "command",
    "shell",
    "yaml",
]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds that hold for any source, however hostile.

    Attributes:
        configurations: Kept for one site; the rest are counted in `Site.truncated`.
        paths: Followed through one function for one parameter set, where conditions cannot be decided.
        steps: Nodes evaluated for one entry point.
        file_steps: Nodes evaluated for all entry points of one file.
        depth: Calls within calls.
        iterations: Of one loop or comprehension.
        elements: Of one list, string or other value that is built.
        file_bytes: Larger files are not read.
        memory: Bytes of all values that are made or walked through for one file.
        value: Bytes of one value.
        commas: Files with more commas than this hold data, not tests, and are not read.
    """

    configurations: int = 256
    paths: int = 8
    steps: int = 25_000
    file_steps: int = 150_000
    depth: int = 24
    iterations: int = 1_000
    elements: int = 100_000
    file_bytes: int = 10_000_000
    memory: int = 64_000_000
    value: int = 1_600_000
    commas: int = 400_000

    def budget(self, length: int = 0) -> Budget:
        """What may be spent on one file.

        Args:
            length: Characters of a text that is followed from its beginning to its end: one step more for each, so that
                no script is cut off for its length alone, and the work still grows no faster than the text.
        """
        return Budget(self.file_steps + length, self.memory, self.value)


@dataclass(frozen=True, slots=True)
class Constant:
    """What an attribute of one of the engine's classes stands for.

    Attributes:
        value: The attribute itself; of a member of an enumeration, its `.value`, None where that is not plain.
        typed: The plain value that reaches the engine where it is typed.
        member: Whether it is a member of an enumeration.
    """

    value: str | float | None
    typed: str | float
    member: bool = False


@dataclass(frozen=True, slots=True)
class ScanConfig:
    """What a scan may assume, and how far it goes.

    Attributes:
        platform: `cuda`, `rocm`, `xpu` or `cpu`: decides platform checks in the sources; None leaves them open.
        capability: Compute capability that decides capability checks; None leaves them open.
        device_count: Devices that decides checks of their number; None leaves them open.
        versions: Package -> version, deciding version checks of that package.
        constants: `Class.NAME` -> what that name of the engine's stands for, as far as its source is at hand.
        cache_dir: Where results are kept between scans; None keeps none.
        processes: Processes that read Python files; 1 reads them here.
        limits: Bounds on work.
    """

    platform: Literal["cuda", "rocm", "xpu", "cpu"] | None = "cuda"
    capability: tuple[int, int] | None = None
    device_count: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, Constant] = field(default_factory=dict)
    cache_dir: Path | None = None
    processes: int = 1
    limits: Limits = field(default_factory=Limits)


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


def holds_unknown(value: Any) -> bool:
    """Whether a plain value is or contains an `Unknown`."""
    if isinstance(value, Unknown):
        return True
    if isinstance(value, Mapping):
        return any(holds_unknown(item) for item in value.values())
    return isinstance(value, list | tuple) and any(holds_unknown(item) for item in value)


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
class Guard:
    """A condition under which the site runs at all (`skipif`, `xfail`, a device or version marker).

    Attributes:
        kind: What it does.
        text: Its source, shortened.
        where: Where it stands.
        decided: Whether the condition holds (a `skipif` that holds skips); None where that is open.
    """

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
class Configuration:
    """One concrete configuration of a site.

    Attributes:
        model: Model id or path, or `Unknown`.
        keywords: Engine keyword (vLLM's `EngineArgs` name) -> how it was typed.
        params: The pytest parameter id that leads here, empty where there is none.
        complete: Whether every keyword that reaches the engine is named (no unknown splat).
        missing: Why it is not complete, empty if it is.
        caller: Qualified name of the test or function whose run leads here, where that is not the site's own.
        assumed: Conditions that reading could not decide and that hold here. Configurations of one site that differ
            in nothing else that names them (`params`, `caller`) are alternatives: one of them occurs.
        guards: Conditions under which this one runs.
        negative: Set under `pytest.raises`.
        patched: Why the environment is not the engine's usual one, None if it is.
        front_end: Flags that a server's own front end takes (`port`, `api_key`), apart from the engine's.
        words: Of a server's command line, every word but the program and the model, where all of them are known and
            nothing else reaches the engine; None otherwise.
    """

    model: Any
    keywords: Mapping[str, Typed]
    params: str = ""
    complete: bool = True
    missing: str = ""
    caller: str = ""
    assumed: tuple[str, ...] = ()
    guards: tuple[Guard, ...] = ()
    negative: Negative | None = None
    patched: str | None = None
    front_end: Mapping[str, Typed] = field(default_factory=dict)
    words: tuple[str, ...] | None = None

    @property
    def full(self) -> bool:
        """Whether model and every keyword are known."""
        return self.complete and not any(
            holds_unknown(value) for value in (self.model, *(typed.value for typed in self.keywords.values()))
        )

    @property
    def known(self) -> bool:
        """Whether anything at all is known: the model, or one keyword."""
        return not isinstance(self.model, Unknown) or any(
            not isinstance(typed.value, Unknown) for typed in self.keywords.values() if typed.layer != "environment"
        )


@dataclass(frozen=True, slots=True)
class Site:
    """One place that constructs an engine.

    Attributes:
        where: The call, command or mapping.
        form: How it constructs.
        function: Qualified name of the enclosing test or helper, empty at module level.
        configurations: What it can construct; at least one.
        guards: Conditions under which every one of them runs.
        negative: Set if every one of them stands under `pytest.raises`.
        patched: Why the environment of every one is not the engine's usual one (patched engine code), None if it is.
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
