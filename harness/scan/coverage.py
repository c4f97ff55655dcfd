"""How much of what was found is known: sites by form and by reason, and an independent count to hold them against."""

import ast
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from staticfire.harness.scan.base import Configuration, Scan, Site, Unknown

State = Literal["full", "partial", "unknown"]

CALLS: Mapping[str, str] = {
    "vllm_runner": "vllm_runner",
    "VllmRunner": "vllm_runner",
    "LLM": "LLM",
    "EngineArgs": "EngineArgs",
    "AsyncEngineArgs": "AsyncEngineArgs",
    "VllmConfig": "VllmConfig",
    "RemoteOpenAIServer": "RemoteOpenAIServer",
    "RemoteVLLMServer": "RemoteOpenAIServer",
    "RemoteLaunchRenderServer": "RemoteOpenAIServer",
    "RemoteOpenAIServerCustom": "RemoteOpenAIServer",
    "compare_two_settings": "compare_settings",
    "compare_all_settings": "compare_settings",
}
"""Called name -> form, for the independent count."""


@dataclass(slots=True)
class Coverage:
    """Sites by how much of them is known.

    Attributes:
        by_form: Form -> state -> sites.
        by_reason: Why sites are not fully known -> how many sites it holds back.
    """

    by_form: dict[str, Counter[State]] = field(default_factory=dict)
    by_reason: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> Counter[State]:
        """All forms together."""
        return sum(self.by_form.values(), Counter())


def state(site: Site) -> State:
    """How much of a site is known: all of every configuration, something, or nothing."""
    if not site.truncated and all(item.full for item in site.configurations):
        return "full"
    if site.truncated and all(item.full for item in site.configurations):
        return "full"
    return "partial" if any(item.known for item in site.configurations) else "unknown"


def coverage(scan: Scan) -> Coverage:
    """Count the sites of a scan."""
    found = Coverage()
    for site in scan.sites:
        known = state(site)
        found.by_form.setdefault(site.form, Counter())[known] += 1
        if known != "full":
            found.by_reason.update({reason for item in site.configurations for reason in reasons(item)})
    return found


def reasons(item: Configuration) -> set[str]:
    """Why a configuration is not fully known, as `what: why`."""
    found: set[str] = set()
    if item.missing:
        found.add(f"keywords: {item.missing}")
    found.update(f"model: {why}" for why in _unknown(item.model))
    for name, typed in item.keywords.items():
        kind = "environment" if name.startswith("env:") else "value"
        found.update(f"{kind}: {why}" for why in _unknown(typed.value))
    return found


def _unknown(value: Any) -> set[str]:
    if isinstance(value, Unknown):
        return {value.reason}
    if isinstance(value, Mapping):
        return {why for item in value.values() for why in _unknown(item)}
    if isinstance(value, list | tuple):
        return {why for item in value for why in _unknown(item)}
    return set()


def table(scan: Scan) -> str:
    """The counts as text."""
    found = coverage(scan)
    lines = [f"{'form':<20} {'sites':>6} {'full':>6} {'partial':>8} {'unknown':>8}"]
    for form, counts in [*sorted(found.by_form.items()), ("all", found.total)]:
        sites = sum(counts.values())
        lines.append(f"{form:<20} {sites:>6} {counts['full']:>6} {counts['partial']:>8} {counts['unknown']:>8}")
    lines.append("")
    lines.append(f"{'not fully known because of':<34} {'sites':>6}")
    lines.extend(f"{reason:<34} {count:>6}" for reason, count in found.by_reason.most_common())
    return "\n".join(lines)


class _Counter(ast.NodeVisitor):
    """Counts calls by the last name of what is called."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.renamed: dict[str, str] = {}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Remember under which other names constructors are imported."""
        self.renamed.update((alias.asname, alias.name) for alias in node.names if alias.asname and alias.name in CALLS)

    def visit_Call(self, node: ast.Call) -> None:
        """Count one call."""
        target = node.func
        name = target.id if isinstance(target, ast.Name) else target.attr if isinstance(target, ast.Attribute) else ""
        if (
            isinstance(target, ast.Attribute)
            and isinstance(target.value, ast.Name)
            and target.value.id in {"self", "cls"}
        ):
            name = ""
        name = self.renamed.get(name, name) if isinstance(target, ast.Name) else name
        if name in CALLS:
            self.counts[CALLS[name]] += 1
        self.generic_visit(node)


def count_calls(files: Iterable[Path]) -> Counter[str]:
    """Calls by name over the syntax trees of files: what the sites of each form must add up to.

    Args:
        files: Python files; those that do not parse count nothing.
    """
    total: Counter[str] = Counter()
    for file in files:
        visitor = _Counter()
        try:
            visitor.visit(ast.parse(file.read_bytes()))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        total.update(visitor.counts)
    return total
