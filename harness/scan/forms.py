"""The names that construct an engine, and what their positional arguments mean."""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import AnyStr

from staticfire.harness.scan.base import Form


@dataclass(frozen=True, slots=True)
class Signature:
    """How a constructing call is read when its own source is not at hand.

    Attributes:
        form: The form that its sites have.
        positional: Names of positional arguments, in order.
        model: Name of the argument that is the model, None where a nested configuration holds it.
        flags: Names of arguments that are command-line lists: one configuration for each.
        environments: Names of arguments that are environments, parallel to `flags`.
        ignored: Keywords that do not reach the engine.
    """

    form: Form
    positional: tuple[str, ...] = ("model",)
    model: str | None = "model"
    flags: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    ignored: frozenset[str] = frozenset()


SERVER = Signature(
    "RemoteOpenAIServer",
    ("model", "vllm_serve_args"),
    flags=("vllm_serve_args",),
    environments=("env_dict",),
    ignored=frozenset({"auto_port", "max_wait_seconds", "child_process_fxn"}),
)
RUNNER = Signature("vllm_runner", ("model",), ignored=frozenset({"default_torch_num_threads"}))

NAMES: Mapping[str, Signature] = {
    "vllm_runner": RUNNER,
    "VllmRunner": RUNNER,
    "LLM": Signature("LLM"),
    "EngineArgs": Signature("EngineArgs"),
    "AsyncEngineArgs": Signature("AsyncEngineArgs"),
    "VllmConfig": Signature("VllmConfig", ("model_config", "cache_config", "parallel_config"), model=None),
    "RemoteOpenAIServer": SERVER,
    "RemoteVLLMServer": SERVER,
    "RemoteLaunchRenderServer": SERVER,
    "RemoteOpenAIServerCustom": SERVER,
    "compare_two_settings": Signature(
        "compare_settings",
        ("model", "arg1", "arg2", "env1", "env2"),
        flags=("arg1", "arg2"),
        environments=("env1", "env2"),
        ignored=frozenset({"method", "max_wait_seconds", "include_seeded_sampling"}),
    ),
    "compare_all_settings": Signature(
        "compare_settings",
        ("model", "all_args", "all_envs"),
        flags=("all_args",),
        environments=("all_envs",),
        ignored=frozenset({"method", "max_wait_seconds", "include_seeded_sampling"}),
    ),
}

_EITHER = "|".join(NAMES)
_RENAMED = re.compile(rf"\b({_EITHER})[ \t]+as[ \t]+(\w+)")


def occurrences(text: AnyStr, pattern: re.Pattern[AnyStr], openings: Iterable[AnyStr]) -> Iterator[re.Match[AnyStr]]:
    """Where a pattern occurs.

    Args:
        text: What is looked through.
        pattern: What is looked for.
        openings: Texts that it can start with, found far faster than the pattern, which is tried only there.
    """
    for opening in openings:
        position = text.find(opening)
        while position >= 0:
            if found := pattern.match(text, position):
                yield found
            position = text.find(opening, position + 1)


@functools.lru_cache(maxsize=256)
def renamed(text: str) -> dict[str, str]:
    """Names under which a source imports constructors: new name -> the constructor's own."""
    return {found[2]: found[1] for found in occurrences(text, _RENAMED, NAMES)}


_ASSIGNED = re.compile(
    r"^[ \t]*(\w+)[ \t]*=[ \t]*(?:(?:functools\.)?partial\([ \t\n]*)?(?:\w+\.)*([A-Za-z]\w*)[ \t]*(?:[,)]|$)",
    re.MULTILINE,
)
_CLASS = re.compile(r"^[ \t]*class[ \t]+(\w+)[ \t]*\(([^)]+)\)", re.MULTILINE)


@functools.lru_cache(maxsize=128)
def _given_names(text: str) -> tuple[tuple[str, frozenset[str]], ...]:
    found = [(new, frozenset((old,))) for new, old in _ASSIGNED.findall(text)]
    return (*found, *((new, frozenset(re.findall(r"\w+", bases))) for new, bases in _CLASS.findall(text)))


def derived(text: str, constructors: Iterable[str]) -> set[str]:
    """Names that a source gives to constructors: by assignment, by `partial`, by a class of that base.

    Args:
        text: The source.
        constructors: Names that construct an engine, or lead to one that does, beside those known by name.
    """
    known = {*NAMES, *constructors}
    found: set[str] = set()
    while new := {name for name, sources in _given_names(text) if name not in known and not known.isdisjoint(sources)}:
        found |= new
        known |= new
    return found


ENGINE_PACKAGES = ("vllm",)
"""Top-level packages that are the engine's own: their source is never followed."""

COMMANDS = re.compile(r"^(?:vllm|python\S*)$")
ENVIRONMENT_CALLS = frozenset({"setenv", "delenv"})

MENTION = re.compile(
    rb"\b(?:" + b"|".join(name.encode() for name in NAMES) + rb")\b|\bvllm\b[\"',\s]+(?:serve|bench)\b|\bapi_server\b"
)
"""A file without any of these holds no site of its own."""
OPENINGS = (*NAMES, "vllm", "api_server")
_OPENINGS = tuple(opening.encode() for opening in OPENINGS)


def mentioned(data: bytes) -> bool:
    """Whether a file names anything that constructs an engine."""
    return next(occurrences(data, MENTION, _OPENINGS), None) is not None


def command_words(words: list[object]) -> bool:
    """Whether the first words of a list start an engine."""
    texts = [word if isinstance(word, str) else "" for word in words[:6]]
    return engine_command(texts) is not None


def engine_command(words: list[str]) -> int | None:
    """Where the arguments start in a command that constructs an engine, None if it constructs none."""
    for index, word in enumerate(words[:12]):
        program = word.rpartition("/")[2]
        following = words[index + 1 : index + 3]
        if program == "vllm" and following[:1] == ["serve"]:
            return index + 2
        if (
            program == "vllm"
            and following[:1] == ["bench"]
            and following[1:]
            in (
                ["latency"],
                ["throughput"],
                ["startup"],
            )
        ):
            return index + 3
        if program == "vllm" and following == ["launch", "render"]:
            return index + 3
        if word == "-m" and following[:1] and following[0] in API_SERVERS:
            return index + 2
    return None


API_SERVERS = frozenset({"vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server"})
