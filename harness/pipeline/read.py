"""A pipeline out of a document: every unknown key and every value of a wrong kind is named, all at once."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from staticfire.harness.errors import InputError, nearest
from staticfire.harness.pipeline.escape import unescaped
from staticfire.harness.pipeline.steps import (
    Adjustment,
    Block,
    Command,
    Dependency,
    Group,
    Matrix,
    Pipeline,
    Retry,
    RetryRule,
    SoftFail,
    Step,
)

_KINDS: Final[tuple[tuple[tuple[str, ...], type[Step]], ...]] = (
    (("group", "steps"), Group),
    (("block",), Block),
    (("command", "commands"), Command),
)
"""Keys of which one tells what a step is, in order."""
_INSIDE: Final[Mapping[tuple[type, str], type]] = {
    (Command, "retry"): Retry,
    (Retry, "automatic"): RetryRule,
    (Command, "soft_fail"): SoftFail,
    (Command, "matrix"): Matrix,
    (Matrix, "adjustments"): Adjustment,
    (Command, "depends_on"): Dependency,
    (Block, "depends_on"): Dependency,
    (Group, "depends_on"): Dependency,
}


class _GroupHead(msgspec.Struct, frozen=True, kw_only=True):
    """A group but for its steps, which are read one by one."""

    group: str
    key: str
    depends_on: tuple[str | Dependency, ...] = ()


def load(path: Path) -> Pipeline:
    """Read a pipeline file.

    Raises:
        InputError: It cannot be read, is no YAML, or all faults in it.
    """
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text at byte {error.start}.") from error


def parse(text: str, where: str) -> Pipeline:
    """Read the text of a pipeline file: what stands escaped is as the job sees it, a variable is its name.

    Raises:
        InputError: No YAML, or all faults in it.
    """
    try:
        document = _each_text(yaml.safe_load(text))
    except RecursionError as error:
        raise InputError(f"{where}: nested too deeply, or in itself.") from error
    except (yaml.YAMLError, ValueError) as error:  # the other: a date that is none
        raise InputError(f"{where}: not YAML: {error}") from error
    return pipeline(document, where)


def pipeline(document: Any, where: str) -> Pipeline:
    """Read a document.

    Raises:
        InputError: All faults in it.
    """
    if not isinstance(document, Mapping):
        raise InputError(f"{where}: a pipeline is a mapping with steps, not {_kind(document)}.")
    faults = [f"{where}: {fault}" for fault in _unknown(document, ("env", "steps"))]
    listed = document.get("steps")
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
        raise InputError("\n".join([*faults, f"{where}: steps must be a list of at least one step."]))
    steps = [_step(step, f"{where}: steps[{number}]", faults, outer=True) for number, step in enumerate(listed)]
    env = None
    try:
        env = msgspec.convert(document.get("env"), Mapping[str, str] | None)
    except msgspec.ValidationError as error:
        faults.append(f"{where}: env: {error}")
    if faults:
        raise InputError("\n".join(faults))
    return Pipeline(steps=tuple(step for step in steps if step is not None), env=env)


def _step(value: Any, where: str, faults: list[str], *, outer: bool) -> Step | None:
    if not isinstance(value, Mapping):
        faults.append(f"{where}: a step is a mapping, not {_kind(value)}.")
        return None
    kind = next((kind for names, kind in _KINDS if any(name in value for name in names)), None)
    if kind is None or (kind is Group and not outer):
        known = ("command", "commands", "block", *(("group",) if outer else ()))
        near = next((hint for key in value if (hint := nearest(str(key), known))), "")
        faults.append(f"{where}: a step needs one of {', '.join(known)}; this has {', '.join(map(str, value))}.{near}")
        return None
    value = _normal(kind, value)
    before = len(faults)
    faults += [f"{where}: {fault}" for fault in _strange(kind, value)]
    if kind is Group:
        return _group(value, where, faults)
    if len(faults) > before:
        return None
    made: Step | None = _convert(value, kind, where, faults)
    return made


def _group(value: Mapping[str, Any], where: str, faults: list[str]) -> Group | None:
    children = value.get("steps")
    if not isinstance(children, Sequence) or isinstance(children, str):
        faults.append(f"{where}: steps must be a list.")
        return None
    inner = [_step(one, f"{where}.steps[{n}]", faults, outer=False) for n, one in enumerate(children)]
    head = {name: one for name, one in value.items() if name in _GroupHead.__struct_fields__}
    made: _GroupHead | None = _convert(head, _GroupHead, where, faults)
    steps = tuple(step for step in inner if isinstance(step, Command | Block))
    return Group(group=made.group, key=made.key, depends_on=made.depends_on, steps=steps) if made else None


def _convert(value: Mapping[str, Any], kind: type, where: str, faults: list[str]) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        faults.append(f"{where}: {error}")
        return None


def _normal(kind: type, value: Mapping[str, Any]) -> dict[str, Any]:
    """One spelling for what Buildkite takes in several."""
    made = dict(value)
    if kind is Command:
        if "command" in made and "commands" not in made:
            made["commands"] = made.pop("command")
        for name in ("commands", "artifact_paths"):
            if isinstance(made.get(name), str):
                made[name] = [made[name]]
    if isinstance(made.get("depends_on"), str):
        made["depends_on"] = [made["depends_on"]]
    return made


def _strange(kind: type, value: Mapping[str, Any]) -> Iterator[str]:
    """Unknown keys, here and further in."""
    known = [field.encode_name for field in msgspec.structs.fields(kind)]
    yield from _unknown(value, known)
    for name, inside in value.items():
        inner = _INSIDE.get((kind, name))
        for one in inside if isinstance(inside, list | tuple) else [inside]:
            if inner is not None and isinstance(one, Mapping):
                yield from (f"{name}: {fault}" for fault in _strange(inner, one))


def _unknown(value: Mapping[str, Any], known: Sequence[str]) -> Iterator[str]:
    for key in value:
        if key not in known:
            yield f"unknown key {key!r}.{nearest(str(key), known)} Keys: {', '.join(known)}."


def _each_text(value: Any) -> Any:
    match value:
        case str():
            return unescaped(value)
        case Mapping():
            return {_each_text(key): _each_text(item) for key, item in value.items()}
        case list():
            return [_each_text(item) for item in value]
        case _:
            return value


def _kind(value: Any) -> str:
    return "nothing" if value is None else type(value).__name__
