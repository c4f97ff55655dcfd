"""From a scan to questions: every case of every site, with each value that its unknowns can have."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any, Final

from staticfire.harness.check.question import ENTRIES, Question
from staticfire.harness.scan.base import Configuration, Guard, Negative, Scan, Site, Typed, Unknown

MAX_VARIANTS: Final = 64
"""Combinations of candidates tried for one configuration; with more, what is unknown stays open."""
DEVICE: Final = re.compile(
    r"rocm|amd|mi\d{3}x?|xpu|hpu|tpu|npu|cpu|gaudi|neuron|[bh][123]00|gb[123]00|a100|a10|a40|l4|l40s?"
)
"""Words in the name of a file that say what it is for."""
MOVES: Final = ("offload", "connector")
"""Beside these words `cpu` says where data goes, not what the engine runs on."""
MAX_BITS: Final = 14_000
"""Size of an integer up to which Python writes it in decimals; longer ones cannot be put to an engine."""
VARIABLE: Final = "env:"
"""How the scan marks names of environment variables among the keywords."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way that a configuration can be.

    Attributes:
        question: What to ask; None where the model is not known.
        typed: Keyword -> how it was typed, with this variant's value; what is unknown is left out.
        open: What is not known, as short phrases; empty where everything is.
        left_out: Keywords that are typed, and that the question is without because their value is not known.
    """

    question: Question | None
    typed: Mapping[str, Typed]
    open: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One run of a site: a parameter set and a caller. One of its variants occurs.

    Attributes:
        site: The site.
        params: The pytest parameter id, empty where there is none.
        caller: The test whose run leads here, where it is not the site's own function.
        variants: At least one.
        doubts: Why nothing can be certain here, whatever the engine says.
        guards: Open conditions under which it runs.
        negative: The refusal that is expected, if one is.
        skipped: Why it does not run on this device, empty where it may.
        patched: Whether parts of the engine are replaced where it is built.
    """

    site: Site
    params: str
    caller: str
    variants: tuple[Variant, ...]
    doubts: tuple[str, ...] = ()
    guards: tuple[Guard, ...] = ()
    negative: Negative | None = None
    skipped: str = ""
    patched: bool = False

    @property
    def key(self) -> tuple[str, int, int, str, str, str]:
        """Orders cases by place, then parameters."""
        where = self.site.where
        return (where.path, where.line, where.column, self.site.form, self.params, self.caller)

    @property
    def label(self) -> str:
        """The parameter id, and the test that leads here where it is another."""
        return f"{self.caller}[{self.params}]" if self.caller and self.params else self.caller or self.params

    @property
    def questions(self) -> tuple[Question, ...]:
        """What its variants ask."""
        return tuple(variant.question for variant in self.variants if variant.question is not None)


@dataclass(slots=True)
class _Group:
    configurations: list[Configuration] = field(default_factory=list)


def cases(scan: Scan, device: str = "") -> list[Case]:
    """Every case of every site, in an order that does not depend on the scan's.

    Args:
        scan: What was read.
        device: Name of the device that is judged for; files that are named after another one are doubted.
    """
    found = [case for site in scan.sites for case in site_cases(site, device)]
    return sorted(found, key=lambda case: (case.key, [question.key for question in case.questions]))


def site_cases(site: Site, device: str = "") -> list[Case]:
    """The cases of one site.

    Configurations with the same parameters and caller are alternatives of one case where reading had to assume
    something; without assumptions each of them occurs, as in a loop, and is a case of its own.
    """
    groups: dict[tuple[str, str], list[Configuration]] = {}
    for configuration in site.configurations:
        groups.setdefault((configuration.params, configuration.caller), []).append(configuration)
    found = []
    for alternatives in groups.values():
        if any(configuration.assumed for configuration in alternatives):
            found.append(_case(site, alternatives, device))
        else:
            found += [_case(site, [configuration], device) for configuration in alternatives]
    return found


def _case(site: Site, alternatives: list[Configuration], device: str) -> Case:
    running = [one for one in alternatives if not _skip(site, one)]
    first = (running or alternatives)[0]
    skipped = "" if running else _skip(site, first)
    chosen = running or alternatives
    guards = dict.fromkeys((*site.guards, *(guard for one in chosen for guard in one.guards)))
    return Case(
        site=site,
        params=first.params,
        caller=first.caller,
        variants=tuple(_distinct(variant for one in chosen for variant in variants(site, one))),
        doubts=tuple(dict.fromkeys(doubt for one in chosen for doubt in _doubts(site, one, device))),
        guards=tuple(guard for guard in guards if guard.decided is None),
        negative=next((one.negative for one in chosen if one.negative), site.negative),
        skipped=skipped,
        patched=bool(site.patched or any(one.patched for one in chosen)),
    )


def _skip(site: Site, configuration: Configuration) -> str:
    for guard in (*site.guards, *configuration.guards):
        if guard.kind in {"skip", "skipif"} and guard.decided:
            return "skipped by its own condition"
        if guard.kind == "xfail" and guard.decided:
            return "expected to fail"
    return ""


def _doubts(site: Site, configuration: Configuration, device: str) -> Iterator[str]:
    if other := _other_device(site.where.path, device):
        yield f"the name of the file says that it is for {other}"
    if patched := configuration.patched or site.patched:
        yield f"the code replaces parts of its environment: {patched}"
    if site.truncated and configuration.assumed:
        yield "further alternatives were left out"


def _other_device(path: str, device: str) -> str:
    """A device or platform that a path names and that is not the one judged for; empty where there is none."""
    if not device:
        return ""
    own = set(re.split(r"[^a-z0-9]+", device.lower())) | ({"rocm", "amd"} if device.startswith("mi") else {"cuda"})
    words = re.split(r"[^a-z0-9]+", path.lower())
    named = [word for word in words if DEVICE.fullmatch(word)]
    if any(word.startswith(MOVES) for word in words):
        named = [word for word in named if word != "cpu"]
    return next((word for word in named if word not in own), "")


def _distinct(found: Iterable[Variant]) -> Iterator[Variant]:
    seen: set[Any] = set()
    for variant in found:
        key = (variant.question.key if variant.question else None, variant.open)
        if key not in seen:
            seen.add(key)
            yield variant


def variants(site: Site, configuration: Configuration) -> Iterator[Variant]:
    """Every way that a configuration can be, by the candidates of its unknowns."""
    typed = configuration.keywords
    slots = list(_slots(configuration.model, typed))
    count = 1
    for unknown in slots:
        count *= max(1, len(unknown.candidates))
    choosable = slots if count <= MAX_VARIANTS else []
    for choice in islice(product(*(unknown.candidates for unknown in choosable)), MAX_VARIANTS):
        chosen = {id(unknown): value for unknown, value in zip(choosable, choice, strict=True)}
        yield _variant(site, configuration, typed, chosen)


def _slots(model: Any, typed: Mapping[str, Typed]) -> Iterator[Unknown]:
    for value in (model, *(one.value for one in typed.values())):
        yield from _unknowns(value)


def _unknowns(value: Any) -> Iterator[Unknown]:
    """Unknowns with candidates inside a value, each object once."""
    match value:
        case Unknown() if value.candidates:
            yield value
        case dict():
            for item in value.values():
                yield from _unknowns(item)
        case list() | tuple():
            for item in value:
                yield from _unknowns(item)


def _variant(
    site: Site, configuration: Configuration, typed: Mapping[str, Typed], chosen: Mapping[int, Any]
) -> Variant:
    open_: list[str] = []
    left_out: list[str] = []
    known: dict[str, Typed] = {}
    environment: dict[str, str] = {}
    for name, one in typed.items():
        value = _filled(one.value, chosen)
        rest = next(_left(value), None)
        if rest is not None:
            open_.append(f"{name} is not known ({rest.reason})")
            left_out.append(name)
        elif one.layer == "environment":
            environment[name.removeprefix(VARIABLE)] = str(value)
        else:
            known[name] = Typed(value, one.where, one.layer)
    if not configuration.complete:
        open_.append(f"further keywords are not known ({configuration.missing or 'unknown'})")
    model = _filled(configuration.model, chosen)
    arguments = {name: one.value for name, one in known.items()}
    entry = ENTRIES.get(site.form, "EngineArgs")
    # A configuration can be built by hand without a model; every other entry point has one.
    named = "" if model is None and entry == "VllmConfig" else model if isinstance(model, str) and model else None
    # Words are asked as they stand, unless something that they do not say reaches the engine as well.
    argv = configuration.words if entry == "serve" and not open_ else None
    question = None if named is None else Question(named, arguments, entry, environment, argv)
    return Variant(question, known, tuple(open_), tuple(left_out))


def _filled(value: Any, chosen: Mapping[int, Any]) -> Any:
    match value:
        case Unknown():
            return chosen.get(id(value), value)
        case dict():
            return {key: _filled(item, chosen) for key, item in value.items()}
        case list() | tuple():
            return [_filled(item, chosen) for item in value]
        case _:
            return value


def _left(value: Any) -> Iterator[Unknown]:
    match value:
        case Unknown():
            yield value
        case int() if value.bit_length() > MAX_BITS:
            yield Unknown("a number of more than 4,000 digits, which cannot be put to an engine")
        case dict():
            for item in value.values():
                yield from _left(item)
        case list() | tuple():
            for item in value:
                yield from _left(item)
