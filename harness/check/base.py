"""What a check finds, as plain values; formats read nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from staticfire.harness.check.messages import named

Certainty = Literal["certain", "possible"]
Level = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of finding.

    Attributes:
        code: Stable, never used again for anything else.
        name: Readable; reads after "allow".
        level: How grave it is.
        summary: One line.
    """

    code: str
    name: str
    level: Level
    summary: str


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("SC101", "refused", "error", "The engine refuses this configuration."),
        Kind("SC102", "not-refused", "error", "A refusal is expected here, but the engine accepts the configuration."),
        Kind("SC103", "refused-otherwise", "warning", "The engine refuses, but not with the message expected here."),
        Kind("SC201", "rewritten", "warning", "The engine replaces a typed value without refusing it."),
        Kind("SC202", "ignored", "warning", "The engine accepts a typed value, and says that it has no effect."),
        Kind("SC203", "deprecated", "warning", "The engine accepts a typed value, and says that it will go."),
        Kind("SC204", "contradiction", "warning", "Two typed values exclude each other; the engine lets one win."),
        Kind("SC301", "redundant", "note", "A typed value changes nothing: without it the configuration is the same."),
        Kind("SC901", "unused-suppression", "warning", "A suppression comment that suppresses nothing."),
        Kind("SC902", "invalid-suppression", "error", "A suppression comment without a reason, or not to be read."),
    )
}
"""Name -> kind."""


@dataclass(frozen=True, slots=True)
class Change:
    """One edit of what is typed: a keyword set to a value, dropped, or typed under its right name.

    Attributes:
        keyword: The engine's keyword.
        value: The value to type; of no meaning for `drop` and `old`.
        drop: Whether the keyword is to be left out.
        old: What it is typed as; the value stays as it is. Empty where no name is mended.
    """

    keyword: str
    value: Any = None
    drop: bool = False
    old: str = ""

    def __str__(self) -> str:
        """`enable_chunked_prefill=True`, `drop swap_space`, or `rename max_modl_len to max_model_len`."""
        if self.old:
            return f"rename {self.old} to {self.keyword}"
        return f"drop {self.keyword}" if self.drop else f"{self.keyword}={self.value!r}"

    def as_json(self) -> dict[str, Any]:
        """`{"set": keyword, "value": value}`, `{"drop": keyword}` or `{"rename": old, "to": keyword}`."""
        if self.old:
            return {"rename": self.old, "to": self.keyword}
        return {"drop": self.keyword} if self.drop else {"set": self.keyword, "value": self.value}

    @property
    def about(self) -> frozenset[str]:
        """The keywords that it changes."""
        return frozenset({self.keyword, self.old} - {""})

    @property
    def key(self) -> tuple[str, bool, str, str]:
        """Orders changes of any values."""
        return (self.keyword, self.drop, repr(self.value), self.old)


Repair = tuple[Change, ...]
"""Changes that are enough together, each of them needed."""


def spell(repair: Repair) -> str:
    """A repair for people."""
    return ", ".join(str(change) for change in repair)


@dataclass(frozen=True, slots=True)
class Place:
    """One site of a finding.

    Attributes:
        path: As the user named it, with `/`.
        line: 1-based.
        column: 1-based.
        end_line: Last line, the first one where it is not known.
        end_column: 1-based, exclusive; 0 where it is not known.
        function: Qualified name of the test or helper around it.
        form: How it constructs an engine.
        certainty: Of the finding at this site.
        why: What keeps it from being certain, or the conditions under which the code runs at all.
        params: Ids of the parameter sets concerned; empty for a site without parameters.
        total: Parameter sets of the site, those concerned included.
        models: Models concerned.
        fingerprint: Names finding and site across edits elsewhere in the file.
        cases: Configurations concerned; what a baseline counts.
        tried: Parameter sets that were judged; fewer than `total` at a site with very many. 0 where that is not known.
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    function: str
    form: str
    certainty: Certainty
    why: tuple[str, ...] = ()
    params: tuple[str, ...] = ()
    total: int = 1
    models: tuple[str, ...] = ()
    fingerprint: str = ""
    cases: int = 1
    tried: int = 0

    def __str__(self) -> str:
        """`path:line:column`, on one line."""
        return f"{named(self.path)}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One root cause and every site that has it.

    Attributes:
        kind: Name of a `Kind`.
        certainty: `certain` if it is so at one site at least.
        message: The engine's own words, or ours where the engine says nothing.
        origin: Where in the engine it arises: `file:line`, a rule's name, or empty.
        phase: The part that refuses: `front end`, `worker` or `capacity`; empty where that is not known.
        chain: How the values that clash came about.
        rules: Codes and names of the engine's broken rules.
        repairs: Verified repairs of the smallest size, best first; the first one mends every site.
        searched: What was tried, and what was not, where no repair was found.
        sites: In order of path and line.
    """

    kind: str
    certainty: Certainty
    message: str
    origin: str
    sites: tuple[Place, ...]
    phase: str = ""
    chain: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    repairs: tuple[Repair, ...] = ()
    searched: str = ""

    @property
    def facts(self) -> Kind:
        """Its kind."""
        return KINDS[self.kind]

    @property
    def level(self) -> Level:
        """How grave it is here: what is merely possible is no error."""
        if self.certainty == "possible" and self.facts.level == "error":
            return "warning"
        return self.facts.level

    @property
    def repair(self) -> Repair | None:
        """The best repair."""
        return self.repairs[0] if self.repairs else None


@dataclass(frozen=True, slots=True)
class Silenced:
    """A site of a finding that is accepted as it is.

    Attributes:
        finding: The finding, with this site alone.
        how: `comment` or `baseline`.
        reason: Why, in the words of the comment.
    """

    finding: Finding
    how: Literal["comment", "baseline"]
    reason: str


@dataclass(frozen=True, slots=True)
class FormCoverage:
    """Coverage of the sites of one form."""

    sites: int = 0
    full: int = 0
    partial: int = 0
    judged: int = 0
    unknown_model: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much was judged.

    Attributes:
        sites: Places that construct an engine.
        full: Sites of which every keyword that reaches the engine and the model are known, in one case at least.
        partial: Sites that are not full, and of which something is known.
        judged: Sites of which the engine accepted or refused a configuration.
        unknown_model: Sites not judged because no configuration of the model is at hand.
        skipped: Sites that do not run on this device, by their own conditions.
        by_form: Form -> the same figures.
        by_reason: Why a site is not full or not judged -> how many.
        questions: Different configurations put to the engine.
        unanswered: Questions on which the engine failed instead of deciding, and what it failed with -> how many.
        unknown_models: Model -> sites that were not judged for want of it, most first.
        unread: Files, or parts, that were not read: `path: why` or `path:line: why`.
        not_known: Part of an answer (`front end`, `worker`, `capacity`) -> why it is not known -> at how many sites;
            of a site at which something is known of no later part, the first one that is not.
    """

    sites: int = 0
    full: int = 0
    partial: int = 0
    judged: int = 0
    unknown_model: int = 0
    skipped: int = 0
    by_form: Mapping[str, FormCoverage] = field(default_factory=dict)
    by_reason: Mapping[str, int] = field(default_factory=dict)
    questions: int = 0
    unanswered: Mapping[str, int] = field(default_factory=dict)
    unknown_models: Mapping[str, int] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    not_known: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one site; JUnit lists them all.

    Attributes:
        place: The site.
        state: `judged`, or why it was not.
        unknown: Parts of its answers that are not known, and why: `worker: why`.
    """

    place: Place
    state: str
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """Everything a check has to say.

    Attributes:
        engine: Name and version, such as `vllm 0.33.0`.
        device: Name of the device.
        findings: Certain ones first, then by gravity and place.
        coverage: How much was judged.
        silenced: What comments and the baseline accept.
        stale: Entries of the baseline that nothing matches any more, or that count more than there is, for people.
        verdicts: Every site.
        lines: Path -> line number -> text, of the lines that findings point at.
    """

    engine: str
    device: str
    findings: tuple[Finding, ...]
    coverage: Coverage
    silenced: tuple[Silenced, ...] = ()
    stale: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    lines: Mapping[str, Mapping[int, str]] = field(default_factory=dict)

    @property
    def certain(self) -> bool:
        """Whether a finding is certain."""
        return any(finding.certainty == "certain" for finding in self.findings)

    @property
    def last_line(self) -> str:
        """The line that ends every run."""
        found = len(self.findings)
        judged = f"{self.coverage.judged} of {self.coverage.sites} sites judged"
        return f"{found} finding{'' if found == 1 else 's'}; {judged}"
