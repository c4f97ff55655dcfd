"""Turn what runs saw into sites: plain configurations, merged over runs and files."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from staticfire.harness.scan import flags, forms
from staticfire.harness.scan.base import (
    Configuration,
    Form,
    Guard,
    Limits,
    Location,
    Site,
    Typed,
    Unknown,
    Unread,
)
from staticfire.harness.scan.budget import REASON
from staticfire.harness.scan.state import Construct, Record
from staticfire.harness.scan.values import (
    External,
    Instance,
    Joined,
    Keys,
    Made,
    Member,
    Rest,
    unmixed,
)

_BY_NAME = frozenset({
    "AttentionBackendEnum", "CompilationMode", "CUDAGraphMode", "MLAPrefillBackendEnum", "MambaBackendEnum",
})  # fmt: skip
"""Enumerations whose members every release of the engine also takes by their names, its source at hand or not."""
_DEPTH = 20
_SIZE = 5_000
_LATER = re.compile(r"^--config(?:=|$)|\$[({\w]|\{\{|^<[\w -]+>$|=<[\w -]+>$|\{\w+\}|^(?:&&?|\|\|?|;|\d?>.*|<)$")
"""Words that say what reading alone cannot: another file's flags, a template, a variable, the rest of a script."""


@dataclass(frozen=True, slots=True)
class Contribution:
    """One configuration of a site, as one run found it.

    Attributes:
        fallback: Whether the site was read on its own, its callers unknown: of no account once a caller is known.
    """

    where: Location
    form: Form
    function: str
    configuration: Configuration
    fallback: bool = False


@dataclass(frozen=True, slots=True)
class FileResult:
    """What one file contributed.

    Attributes:
        truncated: Place of a site -> configurations left out.
    """

    contributions: tuple[Contribution, ...] = ()
    truncated: tuple[tuple[Location, int], ...] = ()
    unread: tuple[Unread, ...] = ()


def plain(value: Any) -> Any:
    """A value as a configuration holds it: plain, or `Unknown`, possibly nested; bounded in depth and size."""
    return _plain(value, 0, [_SIZE])


def _plain(value: Any, depth: int, left: list[int]) -> Any:  # noqa: C901, PLR0911, PLR0912 - one kind of value, one line
    left[0] -= 1
    if depth > _DEPTH or left[0] < 0:
        return Unknown(REASON)
    if isinstance(value, str):
        return str(value) if len(value) <= _SIZE else Unknown(REASON)
    if value is None or isinstance(value, bool | int | float):
        return value
    match value:
        case Unknown():
            candidates = tuple(_plain(item, depth + 1, left) for item in value.candidates)
            return Unknown(value.reason, value.detail, candidates)
        case Keys() if value.rest is not None:
            return Unknown(value.rest.reason, value.rest.detail)
        case dict():
            return {_key(key): _plain(item, depth + 1, left) for key, item in value.items()}
        case list() | tuple():
            for item in value:
                if isinstance(item, Rest):
                    return Unknown(item.why.reason, item.why.detail)
            return [_plain(item, depth + 1, left) for item in value] if len(value) <= _SIZE else Unknown(REASON)
        case set() | frozenset():
            return sorted((_plain(item, depth + 1, left) for item in value), key=repr)
        case range() if len(value) < 1000:
            return list(value)
        case Member():
            return _plain(value.value, depth + 1, left)
        case Made():
            return _plain(value.keywords, depth + 1, left)
        case External():
            return _external(value)
        case Joined():
            why = next((piece for piece in value.pieces if isinstance(piece, Unknown)), Unknown("value"))
            return Unknown(why.reason, why.detail)
        case Instance():
            return Unknown("object", value.cls.name)
        case _:
            return Unknown("object", type(value).__name__)


def _key(key: Any) -> Any:
    key = unmixed(key)
    if isinstance(key, str):
        return str(key)
    if key is None or isinstance(key, bool | int | float):
        return key
    return str(plain(key))


def _external(value: External) -> Any:
    parts = value.name.split(".")
    if parts[0] == "torch" and len(parts) == 2:
        return parts[1]
    if value.constant is not None:
        return value.constant.typed
    named = len(parts) > 2 and parts[0] in forms.ENGINE_PACKAGES and parts[-2] in _BY_NAME and parts[-1].isupper()
    return parts[-1] if named else Unknown("object", value.name)


def configurations(record: Record, params: str, guards: tuple[Guard, ...]) -> list[Configuration]:
    """The configurations of a site that one run saw."""
    return [_configuration(record, construct, params, guards) for construct in record.constructs]


def _configuration(record: Record, construct: Construct, params: str, guards: tuple[Guard, ...]) -> Configuration:
    keywords: dict[str, Typed] = {}
    front_end: dict[str, Typed] = {}
    missing = construct.missing
    for name, value in construct.keywords.items():
        place = construct.keywords.where.get(name) or construct.where or record.where
        keywords[str(name)] = Typed(plain(value), place, _layer(place, record))
    words = None
    if construct.command is not None:
        words = _words(construct, alone=set(keywords) <= {"model"} and not missing)
        missing = missing or _command(record, construct, keywords, front_end)
    if construct.keywords.rest is not None:
        missing = missing or construct.keywords.rest.reason
    model: Any = None
    if construct.model_key is not None:
        typed = keywords.pop(construct.model_key, None)
        model = typed.value if typed is not None else (Unknown("absent") if missing else None)
    else:
        keywords, model, missing = _sections(keywords, construct, record, missing)
    for source in (record.environment, construct.environment):
        for name, value in source.items():
            place = source.where.get(name) or record.where
            keywords[f"env:{name}"] = Typed(plain(value), place, "environment")
    return Configuration(
        model=model,
        keywords=keywords,
        params=params,
        complete=not missing,
        missing=missing,
        caller=record.caller if record.caller != record.function else "",
        assumed=record.assumed,
        guards=(*guards, *(guard for guard in record.guards if guard not in guards)),
        negative=record.negative,
        patched=record.patched,
        front_end=front_end,
        words=words,
    )


def _words(construct: Construct, *, alone: bool) -> tuple[str, ...] | None:
    """The words of a server's command line without the model; None where the words are not all that counts."""
    assert construct.command is not None
    command, start = list(construct.command), construct.start
    words = command[start:]
    serves = not start or command[start - 1] == "serve" or command[start - 1] in forms.API_SERVERS
    if not alone or not serves or not all(isinstance(word, str) and not _later(word) for word in words):
        return None
    read = flags.parse(words)
    if any(isinstance(value, Unknown) for value in read.keywords.values()):
        return None
    left_out: set[int] = set()
    if "model" not in construct.keywords:
        for first, after in read.spans.get("model", ()):
            left_out.update(range(first, after))
        if not left_out:
            left_out.update(read.positions[:1])
    return tuple(str(word) for index, word in enumerate(words) if index not in left_out)


def _later(word: str) -> bool:
    """Whether a word says what reading alone cannot, or is a placeholder."""
    return bool(
        _LATER.search(word) or flags.PLACEHOLDER.fullmatch(word) or flags.PLACEHOLDER.fullmatch(word.partition("=")[2])
    )


def _layer(place: Location, record: Record) -> Any:
    inside = any(path == place.path and first <= place.line <= last for path, first, last in record.ranges)
    return "wrapper" if inside else "call"


def _command(record: Record, construct: Construct, keywords: dict[str, Typed], front_end: dict[str, Typed]) -> str:
    assert construct.command is not None
    words = list(construct.command[construct.start :])
    read = flags.parse(words)
    base = construct.where or record.where
    missing = read.missing
    if read.positional and "model" not in keywords and "model" not in read.keywords:
        first = read.positional[0]
        place = getattr(first, "where", base)
        keywords["model"] = Typed(plain(first), place, _layer(place, record))
    elif "model" not in keywords and "model" not in read.keywords and missing:
        keywords["model"] = Typed(Unknown(missing), base, "call")
    for name, value in read.keywords.items():
        place = read.where.get(name, base)
        if (
            any(path == base.path and first <= base.line <= last for path, first, last in record.ranges)
            and place is base
        ):
            place = record.where
        typed = Typed(plain(value), place, _layer(place, record))
        (front_end if name in flags.FRONT_END else keywords)[name] = typed
    return missing


def _sections(
    keywords: dict[str, Typed], construct: Construct, record: Record, missing: str
) -> tuple[dict[str, Typed], Any, str]:
    """`VllmConfig(model_config=ModelConfig(...))` as `model_config.dtype` and so on."""
    flat: dict[str, Typed] = {}
    model: Any = None
    for name, typed in keywords.items():
        value = construct.keywords.get(name)
        if isinstance(value, Made) and value.keywords.rest is None:
            for inner, item in value.keywords.items():
                place = value.keywords.where.get(inner) or typed.where
                flat[f"{name}.{inner}"] = Typed(plain(item), place, _layer(place, record))
        elif isinstance(value, Made):
            missing = missing or (value.keywords.rest.reason if value.keywords.rest else "")
        else:
            flat[name] = typed
    section = construct.keywords.get("model_config")
    if isinstance(section, Made):
        model = plain(section.keywords.get("model")) if "model" in section.keywords else None
        flat.pop("model_config.model", None)
    elif section is not None:
        model = plain(section) if isinstance(section, Unknown) else Unknown("object", "model_config")
    return flat, model, missing


def merge(results: Iterable[FileResult], limits: Limits) -> tuple[Site, ...]:
    """Sites out of all files' contributions: callers in other files included, alternatives told apart."""
    by_place: dict[tuple[str, int, int], list[Contribution]] = {}
    truncated: dict[tuple[str, int, int], int] = {}
    for result in results:
        for item in result.contributions:
            by_place.setdefault((item.where.path, item.where.line, item.where.column), []).append(item)
        for where, count in result.truncated:
            key = (where.path, where.line, where.column)
            truncated[key] = truncated.get(key, 0) + count
    return tuple(_site(by_place[key], truncated.get(key, 0), limits) for key in sorted(by_place))


def _site(items: list[Contribution], truncated: int, limits: Limits) -> Site:
    known = [item for item in items if not item.fallback] or items
    first = known[0]
    kept: dict[tuple[str, str], list[Configuration]] = {}
    for item in known:
        configuration = item.configuration
        alike = kept.setdefault((configuration.params, configuration.caller), [])
        if configuration not in alike[-64:]:
            alike.append(configuration)
    configs = [configuration for group in kept.values() for configuration in _settled(group)]
    extra = max(0, len(configs) - limits.configurations)
    configs = configs[: limits.configurations]
    common = [guard for guard in configs[0].guards if all(guard in other.guards for other in configs)]
    return Site(
        where=first.where,
        form=first.form,
        function=first.function,
        configurations=tuple(configs),
        guards=tuple(common),
        negative=_shared([item.negative for item in configs]),
        patched=_shared([item.patched for item in configs]),
        truncated=truncated + extra,
    )


def _shared(values: list[Any]) -> Any:
    return values[0] if all(value is not None for value in values) else None


def settle(items: list[Configuration]) -> list[Configuration]:
    """Drop assumptions that make no difference: alternatives that are all alike become one."""
    groups: dict[tuple[str, str], list[Configuration]] = {}
    for item in items:
        groups.setdefault((item.params, item.caller), []).append(item)
    return [item for group in groups.values() for item in _settled(group)]


def _settled(group: list[Configuration]) -> list[Configuration]:
    if len(group) == 1:
        return group
    distinct: list[Configuration] = []
    bare: list[Configuration] = []
    for item in group:
        if (without := replace(item, assumed=())) not in bare:
            bare.append(without)
            distinct.append(item)
    if len(distinct) == 1:
        return [replace(distinct[0], assumed=tuple(a for a in distinct[0].assumed if a in group[-1].assumed))]
    return distinct


__all__ = ["Contribution", "FileResult", "configurations", "merge", "plain", "settle"]
