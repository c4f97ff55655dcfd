"""`explain` for people: aligned columns, the refusals and the verdict last, where the eye is."""

import shutil
import textwrap
from collections.abc import Iterable
from typing import Final

import click

from staticfire.engine.config.rules.registry import BY_CODE
from staticfire.engine.config.settle_model import layer_sentence
from staticfire.engine.config.unknown import runtime_unknown
from staticfire.harness.cli.explanation import Explanation
from staticfire.harness.cli.flags import fix_words
from staticfire.harness.matrix.spelling import spelled

SOURCES: Final = {"typed": "cyan", "derived": "yellow", "default": None}
LEAST_WIDTH: Final = 40


def render(explanation: Explanation) -> str:
    """Lay out an explanation.

    Args:
        explanation: What to show.

    Returns:
        Text with terminal colours; `click.echo` strips them where nobody can see them.
    """
    parts = [
        _head(explanation),
        _section("Resolved values", _values(explanation)),
        _section("Run-time values, as the worker settles them", _runtime(explanation)),
        _section("Arithmetic", explanation.resolution.arithmetic),
        _section("Replaced or without effect", _rewrites(explanation)),
        _section("Notes", explanation.notes()),
        *_refusals(explanation),
        *_limits(explanation),
        _verdict(explanation),
    ]
    return "\n\n".join(part for part in parts if part)


def _head(explanation: Explanation) -> str:
    model, device = explanation.model, explanation.device
    layers = layer_sentence(model).removeprefix("config.json has ")
    name = click.style(model.name, bold=True)
    like, on = explanation.named
    release = explanation.release.name if like else f"{explanation.release.name}, the newest release known,"
    target = device.name if on else f"{device.name}, the default"
    return f"{name}: {model.architecture}, {layers}; judged as {release} on {target} ({explanation.where})"


def _section(title: str, lines: Iterable[str]) -> str:
    body = "\n".join(textwrap.indent(line, "  ") for line in lines)
    return f"{click.style(title, bold=True)}\n{body}" if body else ""


def _values(explanation: Explanation) -> list[str]:
    values, unknown = explanation.resolution.values, explanation.resolution.unknown
    rows = [
        (field, "not known", value.source, unknown[field])
        if field in unknown
        else (field, _short(value.value), value.source, value.because or "")
        for field, value in values.items()
        if not field.startswith("model.arch")
    ]
    names, shown = (max(len(row[i]) for row in rows) for i in (0, 1))
    lines = []
    for field, text, source, because in rows:
        left = f"{field:{names}}  {text:{shown}}  "
        padding = " " * (len("derived") - len(source))
        reason = f"{padding}  {_hang(because, len(left) + 13)}" if because else ""
        lines.append(f"{left}{click.style(source, fg=SOURCES[source])}{reason}")
    return lines


def _hang(text: str, indent: int) -> str:
    """Wrap a last column to the terminal."""
    width = max(LEAST_WIDTH, shutil.get_terminal_size((120, 24)).columns - indent)
    return f"\n{' ' * (indent - 2)}".join(textwrap.wrap(text, width)) if text else ""


def _short(value: object) -> str:
    return "-" if value is None else spelled(value)


def _runtime(explanation: Explanation) -> list[str]:
    runtime, values = explanation.resolution.runtime, explanation.resolution.values
    unknown = explanation.resolution.unknown
    if runtime is None:
        reasons = dict.fromkeys(runtime_unknown(unknown).values()) or ("of what is said below",)
        told = "not known" if unknown or not explanation.resolution.violations else "undefined"
        return [f"{told}, because {reason}" for reason in reasons]
    front = values["cache.block_size"].value
    grown = f"{front} -> {runtime.block_size}" if front != runtime.block_size else str(runtime.block_size)
    length = values["model.max_model_len"].value
    fitted = f"{length} -> {runtime.max_model_len}" if length != runtime.max_model_len else str(length)
    rows = (
        ("block_size", grown),
        ("mamba_block_size", _short(runtime.mamba_block_size)),
        ("page_size_bytes", str(runtime.page_size_bytes)),
        ("mamba_page_size_padded", _short(runtime.mamba_page_size_padded)),
        ("num_gpu_blocks", str(runtime.num_gpu_blocks)),
        ("num_groups", str(runtime.num_groups)),
        ("max_model_len", fitted),
        ("kv_cache_max_concurrency", f"{runtime.kv_cache_max_concurrency:.2f}"),
        ("kv_cache_size_tokens", str(runtime.kv_cache_size_tokens)),
    )
    width = max(len(name) for name, _ in rows)
    shown = [f"{name:{width}}  {text}" for name, text in rows if name not in unknown]
    for reason in dict.fromkeys(runtime_unknown(unknown).values()):
        hidden = ", ".join(name for name, _ in rows if unknown.get(name) == reason)
        shown.append(f"not known, because {reason}: {hidden}")
    return shown


def _rewrites(explanation: Explanation) -> list[str]:
    return [f"{rewrite.code} {rewrite.name}: {rewrite.message}" for rewrite in explanation.resolution.rewrites]


def _refusals(explanation: Explanation) -> list[str]:
    """Every broken rule with its chain, then the repairs, which are for all of them together."""
    violations = explanation.resolution.violations
    parts = []
    for violation in violations:
        title = click.style(f"Refused: {violation.code} {violation.name}", fg="red", bold=True)
        chain = "\n".join(f"    {link}" for link in violation.chain)
        parts.append(f"{title}\n  {violation.message}\n{chain}".rstrip())
    if violations:
        parts.append(_fixes(explanation))
    return parts


def _limits(explanation: Explanation) -> list[str]:
    """What is asked for and not computed here, where another engine may have it."""
    parts = []
    for limit in explanation.resolution.limits:
        title = click.style(f"Not known: {limit.code} {limit.name}", fg="yellow", bold=True)
        chain = "\n".join(f"    {link}" for link in limit.chain)
        parts.append(f"{title}\n  {limit.message}\n{chain}".rstrip())
    return parts


def _fixes(explanation: Explanation) -> str:
    if not explanation.fixes:
        advice = "\n".join(f"  {v.code}: {BY_CODE[v.code].fix}" for v in explanation.resolution.violations)
        return f"{click.style('No change of flags was found that repairs it', bold=True)}\n{advice}"
    together = " (one repair for all)" if len(explanation.resolution.violations) > 1 else ""
    title = click.style(f"Fix, verified by resolving again{together}", fg="green", bold=True)
    lines = []
    for number, fix in enumerate(explanation.fixes):
        lead = "or: " if number else ""
        lines.append(f"  {lead}{fix_words(fix, explanation.typed)}\n      {explanation.command(fix)}")
    return "\n".join([title, *lines])


def _verdict(explanation: Explanation) -> str:
    resolution = explanation.resolution
    if resolution.verdict == "accepted":
        return click.style("Accepted.", fg="green", bold=True)
    if resolution.verdict == "not known":
        codes = ", ".join(dict.fromkeys(limit.code for limit in resolution.limits))
        told = f"Not known whether {explanation.release.name} accepts it: what {codes} names is not computed here."
        return click.style(told, fg="yellow", bold=True)
    codes = ", ".join(dict.fromkeys(violation.code for violation in resolution.violations))
    return click.style(f"Refused by {codes}.", fg="red", bold=True)
