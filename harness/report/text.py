"""Evidence of a cell as text that a person reads; shared by the terminal, JUnit and HTML."""

import re
from collections.abc import Mapping
from typing import Any

from staticfire.harness.run.result import CellResult

LONG = ("traceback", "output")
"""Long texts, shown last and as they are."""

# XML 1.0, production 2 (Char): what is outside can stand in no document, not even escaped; HTML forbids the same
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def clean(text: str) -> str:
    """Return `text` without characters that XML and HTML cannot hold, such as terminal escapes."""
    return text if text.isprintable() else _FORBIDDEN.sub("", text)


def headline(result: CellResult) -> str:
    """One line: the verdict and the most telling fact."""
    rule = f" ({result.rule})" if result.rule else ""
    said = _said(result.detail or {})
    return f"{result.verdict}{rule}: {said}" if said else f"{result.verdict}{rule}"


def _said(detail: Mapping[str, Any]) -> str:
    failures = _failures(detail)
    if failures:
        return _lead(failures[0])
    said = next((_value(detail[key]) for key in ("error", "vacuous", "message", "reason") if detail.get(key)), "")
    return next(iter(said.splitlines()), "")


def evidence(result: CellResult, *, brief: bool = False) -> str:
    """What `detail` says, as lines: failures first, then figures, long texts last; empty without detail.

    Args:
        result: Of any verdict.
        brief: For the line under a headline: the first failure alone, where there are failures, and no error twice.
    """
    detail = {key: value for key, value in (result.detail or {}).items() if key != "rerun"}
    if brief and str(detail.get("error")) in headline(result):
        del detail["error"]
    failures = _failures(detail)
    detail.pop("failures", None)
    shown = failures[:1] if brief else failures
    lines = [line for failure in shown for line in _failure(failure)]
    if failures and brief:
        return "\n".join(lines)
    blocks = [(key, str(detail.pop(key))) for key in LONG if detail.get(key)]
    lines += [line for key, value in detail.items() for line in _fact(key, value)]
    for key, block in blocks:
        lines += [f"{key}:", *(f"  {line}" for line in block.rstrip().splitlines())]
    return "\n".join(lines)


def _failures(detail: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = detail.get("failures")
    return [failure for failure in found if isinstance(failure, Mapping)] if isinstance(found, list) else []


def _lead(failure: Mapping[str, Any]) -> str:
    """`wrong against transformers: run cold, prompt 3, position 17: logprobs are off by 0.31`."""
    where = ", ".join(f"{key} {failure[key]}" for key in ("run", "prompt", "position") if key in failure)
    against = f"{failure.get('grade', 'failed')} against {failure.get('against', 'the oracle')}"
    return ": ".join(part for part in (against, where, str(failure.get("message", ""))) if part)


def _failure(failure: Mapping[str, Any]) -> list[str]:
    """A comparison that failed: where, the first differing token, the logprobs around it, the rest."""
    rest = dict(failure)
    for key in ("grade", "against", "run", "prompt", "position", "message"):
        rest.pop(key, None)
    expected, observed = rest.pop("expected_token", None), rest.pop("observed_token", None)
    lines = [_lead(failure)]
    if expected or observed:
        lines.append(f"  expected token {_token(expected)}, observed {_token(observed)}")
    lines += _logprobs(rest.pop("logprobs", None))
    return lines + [line for key, value in rest.items() for line in _fact(key, value, "  ")]


def _token(token: Any) -> str:
    if isinstance(token, Mapping):
        return f"{token.get('id')} {token.get('text')!r}"
    return "none" if token is None else str(token)


def _logprobs(around: Any) -> list[str]:
    """A small table: for each position, the best tokens of both sides with both logprobs."""
    if not isinstance(around, list):
        return []
    lines = [f"  {'position':>8} {'token':>16} {'expected':>12} {'observed':>12}"]
    for row in around:
        if not isinstance(row, Mapping):
            continue
        for token in row.get("tokens") or ():
            name = f"{token.get('id')} {token.get('text')!r}"
            pair = f"{_logprob(token.get('expected')):>12} {_logprob(token.get('observed')):>12}"
            lines.append(f"  {row.get('position')!s:>8} {name:>16} {pair}")
    return lines


def _logprob(value: Any) -> str:
    return f"{value:.6f}" if isinstance(value, (int, float)) else "-" if value is None else str(value)


def _fact(key: str, value: Any, indent: str = "") -> list[str]:
    if isinstance(value, Mapping) and not all(_is_short(item) for item in value.values()):
        return [f"{indent}{key}:", *(line for name, item in value.items() for line in _fact(name, item, indent + "  "))]
    if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        facts = [line for number, item in enumerate(value) for line in _fact(f"[{number}]", item, indent + "  ")]
        return [f"{indent}{key}:", *facts]
    return [f"{indent}{key}: {_value(value)}"]


def _is_short(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_value(item)}" for key, item in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(_value(item) for item in value) or "none"
    if isinstance(value, float):
        return f"{value:.6g}"
    return "none" if value is None else str(value)
