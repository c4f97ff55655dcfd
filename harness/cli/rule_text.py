"""The page of a rule, with an example that is resolved on the spot."""

import shlex
import textwrap

import click

from staticfire.engine.config import resolve
from staticfire.engine.config.release import REFERENCE, RELEASES
from staticfire.engine.config.resolution import Fix
from staticfire.engine.config.rules.base import RewriteRule, Rule
from staticfire.engine.config.rules.examples import DEVICES, example_model
from staticfire.harness.cli.flags import fix_words, flags


def page(rule: Rule | RewriteRule) -> str:
    """Lay out everything that the catalogue knows about a rule.

    Args:
        rule: A rule of the catalogue.

    Returns:
        The page.
    """
    kind = "refuses" if isinstance(rule, Rule) else "replaces"
    parts = [
        f"{click.style(f'{rule.code} {rule.name}', bold=True)}  ({kind}; since {rule.since})",
        rule.summary,
        _fold("Why", rule.why),
        _fold("Fix", rule.fix),
        f"Reads: {', '.join(rule.fields) or 'keywords that no section holds'}",
        *_engines(rule),
        _example(rule),
    ]
    return "\n\n".join(parts)


def _fold(title: str, text: str) -> str:
    return textwrap.fill(f"{title}: {text}", 100, subsequent_indent="  ")


def _engines(rule: Rule | RewriteRule) -> list[str]:
    """Which engines a rule holds for, where that is not all."""
    if not isinstance(rule, Rule):
        return []
    names = [release.name for release in RELEASES.values() if rule.holds(release)]
    if rule.limit:
        return [f"Leaves open, where it applies: {', '.join(name for name in names if name != REFERENCE.name)}"]
    return [] if len(names) == len(RELEASES) else [f"Holds for: {', '.join(names)}"]


def _example(rule: Rule | RewriteRule) -> str:
    """Show the example, what resolution says to it now, and what repairs it."""
    example, model = rule.example, example_model(rule.example.model)
    resolution = resolve(example.typed, model, DEVICES[example.device], RELEASES[example.release])
    typed = shlex.join(flags(example.typed)) or "nothing typed"
    engine = "" if example.release == REFERENCE.name else f", for {example.release}"
    lines = [f"Example: {typed}  (a small {model.architecture}, on {example.device}{engine})"]
    lines += [f"  {broken.message}" for broken in (*resolution.violations, *resolution.limits)]
    lines += [f"  {rewrite.message}" for rewrite in resolution.rewrites if rewrite.code == rule.code]
    if example.fix:
        changes = example.fix
        fix = Fix(
            set={name: value for name, value in changes.items() if value is not None},
            drop=tuple(name for name, value in changes.items() if value is None),
        )
        lines.append(f"  repaired by: {fix_words(fix, example.typed)}")
    return "\n".join(lines)
