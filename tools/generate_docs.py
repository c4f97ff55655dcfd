"""Write the documentation that is made from code, or check that it is up to date.

Usage: python tools/generate_docs.py [--check]
"""

import datetime as dt
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from staticfire.engine.config.options import KNOWN, VERSIONS
from staticfire.engine.config.release import REFERENCE, RELEASES
from staticfire.engine.config.resolution import Fix
from staticfire.engine.config.rules.base import RewriteRule, Rule
from staticfire.engine.config.rules.registry import CATALOGUE, RULES
from staticfire.engine.config.typed import IMPLEMENTED
from staticfire.engine.metrics.catalog import CACHE_CONFIG_INFO, ENGINE_UP, LATENCIES, PREFIX, VALUES
from staticfire.harness.cli.flags import fix_words, flags
from staticfire.harness.pipeline import bootstrap
from staticfire.harness.pipeline.settings import load
from staticfire.harness.pipeline.sources import DEFAULT

ROOT: Final = Path(__file__).resolve().parent.parent
WARNING: Final = "<!-- Made by tools/generate_docs.py; run it to write this anew. -->"


def rules_page() -> str:
    """Give the catalogue: a table, then a section a rule."""
    intro = (
        f"{len(RULES)} rules refuse a configuration; {len(CATALOGUE) - len(RULES)} say what is replaced, or has no "
        "effect, without a refusal. `staticfire rule SF101` prints one of them with its example resolved on the spot. "
        "Codes are never reused. A rule's name is the `type` of its entry in a `ConfigError`."
    )
    head = ["# Rules of the reference engine", "", WARNING, "", intro, ""]
    lines = [*head, "| Code | Name | | What it says |", "|---|---|---|---|"]
    lines += [
        f"| [{rule.code}](#{rule.code.lower()}) | `{rule.name}` | {_kind(rule)} | {rule.summary} |"
        for rule in CATALOGUE
    ]
    for rule in CATALOGUE:
        lines += ["", *_section(rule)]
    return "\n".join(lines) + "\n"


def _kind(rule: Rule | RewriteRule) -> str:
    return "refuses" if isinstance(rule, Rule) else "replaces"


def _section(rule: Rule | RewriteRule) -> list[str]:
    example = rule.example
    shown = " ".join(flags(example.typed)) or "nothing typed"
    device = "" if example.device == "cpu" else f", on a device `{example.device}`"
    engine = "" if example.release == REFERENCE.name else f", for `{example.release}`"
    others = [release.name for release in RELEASES.values() if isinstance(rule, Rule) and not rule.holds(release)]
    lines = [
        f"## {rule.code}",
        "",
        f"`{rule.name}`, since {rule.since}. {rule.summary}",
        "",
        rule.why,
        "",
        f"- Fix: {rule.fix}",
        f"- Reads: {', '.join(f'`{field}`' for field in rule.fields) or 'keywords that no section holds'}",
        f"- Example: `{shown}` on the small model `{example.model}`{device}{engine}",
    ]
    is_limit = isinstance(rule, Rule) and rule.limit
    if is_limit:
        lines.append("- For a release of vLLM: whether it accepts is not known")
    if others and not is_limit:
        lines.append(f"- Does not hold for: {', '.join(f'`{name}`' for name in others)}")
    if example.fix:
        lines.append(f"- Repaired by: `{_repair(rule)}`")
    return lines


def _repair(rule: Rule | RewriteRule) -> str:
    changes = rule.example.fix or {}
    fix = Fix(
        set={name: value for name, value in changes.items() if value is not None},
        drop=tuple(name for name, value in changes.items() if value is None),
    )
    return fix_words(fix, rule.example.typed)


def keywords_page() -> str:
    """Give every keyword of the vLLM versions followed, and what the reference engine makes of it."""
    intro = (
        f"Every `EngineArgs` keyword of vLLM {', '.join(VERSIONS)}. Implemented ones do what vLLM's do. Those without "
        "effect are accepted, and `staticfire explain` says so. Unsupported ones are refused (SF501) unless their "
        "value asks for nothing."
    )
    lines = ["# Keywords", "", WARNING, "", intro, "", "| Keyword | Reference engine | Why |", "|---|---|---|"]
    rows = dict.fromkeys(IMPLEMENTED, ("implemented", ""))
    for name, option in KNOWN.items():
        where = "" if option.versions == VERSIONS else f" (only in {', '.join(option.versions)})"
        word = "no effect" if option.effect == "none" else "unsupported"
        rows[name] = (word, f"{option.reason}{where}")
    lines += [f"| `{name}` | {word} | {why} |" for name, (word, why) in sorted(rows.items())]
    return "\n".join(lines) + "\n"


METRICS = """\
The engines' counts and configuration in Prometheus' text format. Names and meanings are those of vLLM's V1 engine
with the prefix `staticfire:` for `vllm:`, so that a dashboard needs one edit; all metrics but the first two have the
labels `engine` and `model_name`.

`staticfire start MODEL --metrics-port N` serves them at `/metrics`, from the engines' own registry and nothing else
of the process. `/health` answers 200 while every engine lives, and 503 with the dead ones by name otherwise; any
other path is not found. In a program of one's own:

```python
from staticfire.engine.metrics.server import MetricsServer
from staticfire.engine.metrics.snapshot import Board, take

board = Board()
with MetricsServer(board.read, port=8000):
    board.publish(take(llm.client))
```

Scrapes read what was published last, from threads of their own; they never touch an engine."""

METRICS_NOTES = """\
`cache_config_info` is 1 and says everything in its labels: every field of the cache section and every run-time value
of **that engine's own** configuration, as its workers settled it. Where both have a field (`block_size`,
`mamba_block_size`), the label is the run-time value, the one in force. A field that this model has no value for (a
state block size of a dense model, an override that nobody typed) has no label; the text `None` is never a value, and
an engine that is not ready has no such line at all.

Counters and histograms are cumulative in the engine core and sent whole, so a report that is lost or comes twice
changes nothing. Latencies are taken in the engine core on its monotonic clock: what a request waits in the front end
is not in them. A prompt counts when it is done, once, whatever was cached of it or recomputed. The prefix cache is
asked once a request, when it is first admitted; a request that asks for prompt logprobs does not read the cache and
does not count."""


def metrics_page() -> str:
    """Give every metric, and what its numbers mean."""
    lines = ["# Metrics", "", WARNING, "", METRICS, "", "| Metric | Kind | Meaning |", "|---|---|---|"]
    lines.append(f"| `{CACHE_CONFIG_INFO}` | gauge | The cache configuration in force, as labels. |")
    lines.append(f"| `{ENGINE_UP}` | gauge | 1 while the engine serves, 0 once it is dead. |")
    for value in VALUES:
        suffix = "_total" if value.kind == "counter" else ""
        lines.append(f"| `{PREFIX}{value.name}{suffix}` | {value.kind} | {value.meaning} |")
    lines += [f"| `{PREFIX}{latency.name}` | histogram | {latency.meaning} |" for latency in LATENCIES]
    return "\n".join([*lines, "", METRICS_NOTES]) + "\n"


def pipeline_file() -> str:
    """Give the pipeline that the repository keeps: the step that plans the others."""
    file = ROOT / DEFAULT
    return bootstrap.text(load(file, dt.datetime.now(tz=dt.UTC).date()), str(DEFAULT))


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "docs/rules.md": rules_page,
    "docs/keywords.md": keywords_page,
    "docs/metrics.md": metrics_page,
    ".buildkite/pipeline.yaml": pipeline_file,
}
"""File -> what makes it."""


def stale() -> list[str]:
    """List the files that differ from what the code says."""
    return [
        name
        for name, make in PAGES.items()
        if not (ROOT / name).is_file() or (ROOT / name).read_text(encoding="utf-8") != make()
    ]


def main() -> int:
    """Write, or with `--check` only tell; 1 where something is out of date."""
    late = stale()
    if "--check" in sys.argv[1:]:
        for name in late:
            print(f"{name} is out of date; run python tools/generate_docs.py")
        return int(bool(late))
    for name in late:
        (ROOT / name).write_text(PAGES[name](), encoding="utf-8")
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
