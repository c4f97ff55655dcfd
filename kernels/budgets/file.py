"""The committed budgets: what each kernel took of each GPU when it was last looked at, one file a version of Triton.

A budget is written by `staticfire kernels --update`, an allowance by hand: it says up to how many bytes of stack or of
shared memory a kernel may have on a target beyond what is otherwise refused, and why. Imports nothing heavy.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from staticfire.kernels.budgets.resources import Resources, whole_number

FOLDER: Final = Path(__file__).parent
SCHEMA: Final = 1
_KEYS: Final = ("schema", "triton", "allowances", "kernels")
_BYTES: Final = ("stack_bytes", "shared_bytes")


class BudgetError(ValueError):
    """A file of budgets that cannot be used; the text says which, where and why."""


class Key(NamedTuple):
    """Whose budget it is: op, variant and target by name."""

    op: str
    variant: str
    target: str

    def __str__(self) -> str:
        return f"{self.op} {self.variant} on {self.target}"


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a kernel may take beyond what is otherwise refused.

    Attributes:
        reason: Why; never empty.
        stack_bytes: Stack of a lane.
        shared_bytes: Shared memory of a program, for a kernel that is not launched on the target.
    """

    reason: str
    stack_bytes: int = 0
    shared_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Budgets:
    """One file.

    Attributes:
        triton: Major and minor version, such as `3.9`.
        kernels: What each took.
        allowances: What some may take.
    """

    triton: str
    kernels: Mapping[Key, Resources] = field(default_factory=dict)
    allowances: Mapping[Key, Allowance] = field(default_factory=dict)


def short_version(version: str) -> str:
    """Major and minor of a version: `3.9` of `3.9.0`."""
    return ".".join(version.split(".")[:2])


def path_for(version: str) -> Path:
    """Where the budgets for a version of Triton are kept."""
    return FOLDER / f"triton-{short_version(version)}.json"


def load(path: Path) -> Budgets:
    """Read a file.

    Args:
        path: Of the file.

    Returns:
        Its content.

    Raises:
        FileNotFoundError: There is none.
        BudgetError: It is broken; all faults at once.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise BudgetError(f"{path}: {error}") from error
    if not isinstance(data, dict) or sorted(data) != sorted(_KEYS) or data["schema"] != SCHEMA:
        raise BudgetError(f"{path}: expected an object with schema {SCHEMA} and the keys {', '.join(_KEYS)}")
    faults: list[str] = []
    kernels = dict(_entries("kernels", data, _resources, faults))
    allowances = dict(_entries("allowances", data, _allowance, faults))
    if faults:
        raise BudgetError(f"{path}: " + "; ".join(faults))
    return Budgets(str(data["triton"]), kernels, allowances)


def dump(budgets: Budgets) -> str:
    """Write the text of a file: sorted, a line a target, so that a change shows as the lines that changed."""
    return "\n".join(
        [
            "{",
            f'  "schema": {SCHEMA},',
            f'  "triton": {json.dumps(budgets.triton)},',
            '  "allowances": ' + _nested({key: _plain(value) for key, value in budgets.allowances.items()}) + ",",
            '  "kernels": ' + _nested({key: value.as_json() for key, value in budgets.kernels.items()}),
            "}",
            "",
        ]
    )


def _nested(entries: Mapping[Key, Mapping[str, Any]]) -> str:
    tree: dict[str, dict[str, dict[str, Any]]] = {}
    for key in sorted(entries):
        tree.setdefault(key.op, {}).setdefault(key.variant, {})[key.target] = entries[key]

    def block(inner: Mapping[str, Any], depth: int) -> str:
        if not inner:
            return "{}"
        pad = "  " * depth
        rows = [
            f"{pad}  {json.dumps(name)}: " + (block(value, depth + 1) if depth < 3 else json.dumps(value))
            for name, value in inner.items()
        ]
        return "{\n" + ",\n".join(rows) + f"\n{pad}}}"

    return block(tree, 1)


def _plain(allowance: Allowance) -> dict[str, Any]:
    given = {name: getattr(allowance, name) for name in _BYTES if getattr(allowance, name)}
    return {"reason": allowance.reason, **given}


def _entries(part: str, data: Mapping[str, Any], read: Any, faults: list[str]) -> Iterator[tuple[Key, Any]]:
    """Walk op, variant, target; what is not of that shape is a fault."""
    for op, variants in _items(data[part], part, faults):
        for variant, targets in _items(variants, op, faults):
            for target, entry in _items(targets, f"{op} {variant}", faults):
                key = Key(op, variant, target)
                if isinstance(entry, dict):
                    made = read(key, entry, faults)
                    if made is not None:
                        yield key, made
                else:
                    faults.append(f"{key}: must be an object")


def _items(tree: Any, where: str, faults: list[str]) -> list[tuple[str, Any]]:
    if isinstance(tree, dict):
        return list(tree.items())
    faults.append(f"{where}: must be an object")
    return []


def _resources(key: Key, entry: Mapping[str, Any], faults: list[str]) -> Resources | None:
    found = Resources.faults(entry)
    faults += [f"{key}: {fault}" for fault in found]
    return None if found else Resources(**entry)


def _allowance(key: Key, entry: Mapping[str, Any], faults: list[str]) -> Allowance | None:
    if unknown := sorted(set(entry) - {"reason", *_BYTES}):
        faults.append(f"{key}: unknown {', '.join(unknown)}; an allowance has reason, {' and '.join(_BYTES)}")
        return None
    reason = entry.get("reason")
    if not (isinstance(reason, str) and reason.strip()):
        faults.append(f"{key}: an allowance needs a reason")
        return None
    given = {name: entry[name] for name in _BYTES if name in entry}
    if not given or not all(map(whole_number, given.values())):
        faults.append(f"{key}: an allowance has {' or '.join(_BYTES)}, a whole number")
        return None
    return Allowance(reason, **given)
