"""Compares what kernels take with their budgets: pure decisions on values. Imports nothing heavy."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from staticfire.kernels.budgets.compile import Compiled
from staticfire.kernels.budgets.file import Allowance, Budgets, Key
from staticfire.kernels.budgets.resources import Resources

GRANULE: Final = 8
"""Registers of a lane are handed out in units of this many, by NVIDIA and AMD alike; less than that costs nothing."""


class Kind(NamedTuple):
    """A kind of finding.

    Attributes:
        code: Never reused.
        summary: What it means.
    """

    code: str
    summary: str


KINDS: Final[Mapping[str, Kind]] = {
    "compile": Kind("SK01", "A kernel does not compile for a target."),
    "stack": Kind("SK02", "A kernel keeps more in memory, for want of registers, than its budget says."),
    "spill": Kind("SK03", "A kernel spills more registers than its budget says."),
    "shared": Kind("SK04", "A kernel needs more shared memory than its budget says, or than the device has."),
    "tensor-core": Kind("SK05", "A kernel no longer multiplies on the tensor cores that its budget names."),
    "wide-load": Kind("SK06", "A kernel that loaded 128 bits at a time no longer does."),
    "registers": Kind("SK07", "A kernel takes more registers than its budget says, so fewer programs fit."),
    "mask": Kind("SK08", "A kernel loads or stores a block without a mask, or checks fewer bounds than it did."),
    "no-budget": Kind("SK09", "A kernel has no budget."),
    "stale-budget": Kind("SK10", "A budget or an allowance belongs to no kernel."),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as the budgets say.

    Attributes:
        kind: One of `KINDS`.
        key: Whose.
        message: What, with both numbers.
    """

    kind: str
    key: Key
    message: str

    def __str__(self) -> str:
        return f"{KINDS[self.kind].code} {self.kind}: {self.key}: {self.message}"


def key_of(one: Compiled) -> Key:
    """Whose budget holds for it."""
    return Key(one.variant.op, one.variant.name, one.target.name)


def judge(one: Compiled, budgets: Budgets) -> list[Finding]:
    """Hold one kernel to its budget.

    Args:
        one: What was compiled.
        budgets: The file.

    Returns:
        What exceeds it; nothing for a kernel within it.
    """
    key = key_of(one)
    if one.resources is None:
        return [Finding("compile", key, f"does not compile: {one.error}")]
    budget = budgets.kernels.get(key)
    found = list(refused(one, budgets.allowances.get(key)))
    if budget is None:
        return [*found, Finding("no-budget", key, "no budget; `staticfire kernels --update` makes one")]
    known = {finding.kind for finding in found}
    found += [finding for finding in _exceeded(key, one.resources, budget) if finding.kind not in known]
    return found


def refused(one: Compiled, allowance: Allowance | None) -> Iterator[Finding]:
    """Find what no budget may say without a reason.

    Args:
        one: What was compiled.
        allowance: Of that kernel on that target.

    Yields:
        Stack bytes above the allowance, and shared memory that the device does not have.
    """
    key = key_of(one)
    if one.resources is None:
        yield Finding("compile", key, f"does not compile: {one.error}")
        return
    allowed = allowance or Allowance("none")
    stack, shared, limit = one.resources.stack_bytes, one.resources.shared_bytes, one.target.shared_limit
    if stack > allowed.stack_bytes:
        yield Finding("stack", key, f"{stack} bytes of stack a lane, allowed are {allowed.stack_bytes}")
    if shared > max(limit, allowed.shared_bytes):
        yield Finding("shared", key, f"{shared} bytes of shared memory, the device has {limit}")


def stale(budgets: Budgets, exist: Collection[Key], ops: Collection[str], targets: Collection[str]) -> list[Finding]:
    """Find budgets and allowances of kernels that are no more.

    Args:
        budgets: The file.
        exist: The kernels there are, of the ops and targets that were looked at.
        ops: Ops that were looked at; none for all.
        targets: Targets that were looked at; none for all.

    Returns:
        The findings.
    """
    found = []
    for what, keys in (("budget", budgets.kernels), ("allowance", budgets.allowances)):
        found += [
            Finding("stale-budget", key, f"there is no such kernel; its {what} can go")
            for key in keys
            if key not in exist and (not ops or key.op in ops) and (not targets or key.target in targets)
        ]
    return found


def updated(budgets: Budgets, made: Sequence[Compiled], gone: Iterable[Key]) -> Budgets:
    """Make the budgets be what the kernels take.

    Args:
        budgets: The file before; allowances stay as they are.
        made: What was compiled, none of it refused.
        gone: Kernels that are no more.

    Returns:
        The file after.
    """
    kernels = {key: taken for key, taken in budgets.kernels.items() if key not in set(gone)}
    kernels |= {key_of(one): one.resources for one in made if one.resources is not None}
    return Budgets(budgets.triton, kernels, budgets.allowances)


def _exceeded(key: Key, taken: Resources, budget: Resources) -> Iterator[Finding]:
    if taken.stack_bytes > budget.stack_bytes:
        yield Finding("stack", key, f"{taken.stack_bytes} bytes of stack a lane, its budget is {budget.stack_bytes}")
    for name, words in (("spills", "vector registers"), ("scalar_spills", "scalar registers")):
        now, before = getattr(taken, name), getattr(budget, name)
        if now > before:
            yield Finding("spill", key, f"spills {now} {words}, its budget is {before}")
    if taken.shared_bytes > budget.shared_bytes:
        yield Finding(
            "shared", key, f"{taken.shared_bytes} bytes of shared memory, its budget is {budget.shared_bytes}"
        )
    if lost := _names(budget.tensor_core) - _names(taken.tensor_core):
        left = taken.tensor_core or "none"
        yield Finding("tensor-core", key, f"no longer uses {', '.join(sorted(lost))}; tensor core instructions: {left}")
    if budget.wide_loads and not taken.wide_loads:
        yield Finding("wide-load", key, f"no load of 128 bits is left of {budget.wide_loads}")
    if _granules(taken.registers) > _granules(budget.registers):
        yield Finding("registers", key, f"{taken.registers} registers a lane, its budget is {budget.registers}")
    if taken.unmasked > budget.unmasked:
        yield Finding(
            "mask", key, f"{taken.unmasked} loads and stores of blocks without a mask, its budget is {budget.unmasked}"
        )
    elif taken.bounds < budget.bounds:
        yield Finding(
            "mask", key, f"{taken.bounds} comparisons where its budget has {budget.bounds}: a bound may have been lost"
        )


def _names(instructions: str | None) -> set[str]:
    return set(instructions.split(", ")) if instructions else set()


def _granules(registers: int) -> int:
    return -(-registers // GRANULE)
