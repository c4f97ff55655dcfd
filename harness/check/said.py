"""What the engine says while it accepts: typed values that it ignores, overrides or has deprecated."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from staticfire.harness.check.judge import Judged, doubts
from staticfire.harness.check.messages import clean, named_at, names
from staticfire.harness.check.observe import Observation
from staticfire.harness.check.question import Desk
from staticfire.harness.check.redundant import without
from staticfire.harness.check.values import equal, lookup
from staticfire.harness.check.vocabulary import Vocabulary
from staticfire.harness.probe.base import Accepted, Undecided

DEPRECATED: Final = re.compile(r"deprecat|will be removed|has been removed|no longer supported|obsolete", re.IGNORECASE)
IGNORED: Final = re.compile(
    r"ignor|no effect|without effect|overrid|overwrit|has not been implemented|falling back|fall back|"
    r"(?:is|are|be|been|being) (?:disabled|forced|reset|set to)|disabling|not supported|unused|will not be used",
    re.IGNORECASE,
)


UNHEEDED: Final = re.compile(
    r"ignor|no effect|without effect|has not been implemented|not supported|unused|will not be used", re.IGNORECASE
)
"""Remarks that a value is not heeded though it stands; the others say that it was replaced, and can be checked."""
GOES_ON: Final = re.compile(
    r"(?:it|this|that|they|these|therefore|so|hence|the (?:flag|option|argument|value|setting))\b", re.IGNORECASE
)


def notes(answer: Any) -> list[tuple[str, str]]:
    """Messages of an answer with where they arise; probes that note nothing have none."""
    found = []
    for note in getattr(answer, "notes", None) or ():
        if isinstance(note, str):
            found.append((note, ""))
        elif isinstance(note, dict):
            found.append((str(note.get("message", "")), str(note.get("origin", ""))))
        else:
            found.append((str(getattr(note, "message", note)), str(getattr(note, "origin", ""))))
    return found


def remarks(judged: Judged, desk: Desk, words: Vocabulary, *, every_layer: bool = False) -> Iterator[Observation]:
    """Remarks about what is typed at the site itself.

    Args:
        judged: The case and its answers.
        desk: Knows the engine.
        words: What dropping a keyword falls back to.
        every_layer: Also report remarks about values that only a wrapper's default sets.
    """
    if judged.case.negative is not None:
        return
    accepted = [(variant, answer) for variant, answer in judged.pairs if isinstance(answer, Accepted | Undecided)]
    heard: set[tuple[str, str]] = set()
    for variant, answer in accepted:
        typed = sorted(name for name, one in variant.typed.items() if one.layer == "call" or every_layer)
        for message, origin in notes(answer):
            kind = "deprecated" if DEPRECATED.search(message) else "ignored" if IGNORED.search(message) else ""
            about = sorted(
                (name for name in typed if _about(message, kind, name, variant.typed[name].value, answer)),
                key=lambda name: named_at(message, name),
            )
            if not kind or not about or (message, origin) in heard:
                continue
            heard.add((message, origin))
            why = list(doubts(judged, desk))
            if not _everywhere((message, origin), (answer for _, answer in judged.pairs)):
                why.append("it depends on a value or a condition that is not known")
            repairs = without(about[0], variant, answer, judged, desk, words)
            yield Observation(
                kind, judged.case, variant, clean(message), origin, tuple(why), repairs=repairs, keyword=about[0]
            )


def _about(message: str, kind: str, name: str, value: Any, answer: Accepted | Undecided) -> bool:
    """Whether a remark is about a typed value, and not only in words that are its name, too."""
    if value in (None, False):
        return False
    if kind != "ignored":
        return _spelled_out(message, name)
    told = [passage for passage in _passages(message) if _spelled_out(passage, name) and IGNORED.search(passage)]
    found, held = lookup(name, answer.resolved)
    in_force = found and equal(value, held)
    return any(not in_force or UNHEEDED.search(passage) for passage in told)


def _spelled_out(text: str, name: str) -> bool:
    """Whether a text names a keyword; a name that is an English word as well (`runner`, `seed`) needs more."""
    if not names(text, name):
        return False
    word = re.escape(name)
    if "_" in name:
        # `kernel_config.enable_jit_warmup` is another name.
        return re.search(rf"(?<![\w.]){word.replace('_', '[_-]')}(?![\w]|\.\w)", text, re.IGNORECASE) is not None
    marked = rf"--(?:no-)?{word}\b|[`'\"]{word}[`'\"=]|\b{word}="
    subject = rf"(?:^|\b(?:the|argument|option|parameter|keyword|flag|setting)\s+){word}\b"
    return re.search(f"{marked}|{subject}", text, re.IGNORECASE) is not None


def _passages(message: str) -> list[str]:
    """Sentences, each with those that go on about the same thing, as `It is ignored` does."""
    found: list[str] = []
    for sentence in re.split(r"(?<=[.!?;])\s+|\n+", message):
        if found and GOES_ON.match(sentence):
            found[-1] += f" {sentence}"
        else:
            found.append(sentence)
    return found


def _everywhere(note: tuple[str, str], answers: Iterable[Any]) -> bool:
    return all(note in notes(answer) for answer in answers)
