"""Versions as sources compare them: the order of PEP 440, and the checks that tests make of installed packages."""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from staticfire.harness.scan.base import Unknown

_VERSION = re.compile(
    r"\s*v?(?:(?P<epoch>\d{1,9})!)?(?P<release>\d{1,9}(?:\.\d{1,9})*)"
    r"(?:[-_.]?(?P<pre>alpha|a|beta|b|preview|pre|c|rc)[-_.]?(?P<pre_n>\d{0,9}))?"
    r"(?:-(?P<post_plain>\d{1,9})|[-_.]?(?P<post>post|rev|r)[-_.]?(?P<post_n>\d{0,9}))?"
    r"(?:[-_.]?(?P<dev>dev)[-_.]?(?P<dev_n>\d{0,9}))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?\s*",
    re.IGNORECASE,
)
_STAGES = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}
_DISTRIBUTIONS = {"flashinfer": "flashinfer-python"}
"""Package -> the distribution that it comes from, where the two have different names."""
_PARSERS = frozenset({
    "packaging.version.Version", "packaging.version.parse", "pkg_resources.parse_version",
    "pkg_resources.packaging.version.parse",
})  # fmt: skip
_TORCH_CHECKS = {"is_torch_equal_or_newer": True, "is_torch_equal": False}


class Interpreter(NamedTuple):
    """`sys.version_info`."""

    major: int
    minor: int
    micro: int
    releaselevel: str = "final"
    serial: int = 0


@functools.total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """A version, compared as PEP 440 says.

    Attributes:
        text: As it was written.
        release: Its numbers.
        local: What follows `+`.
    """

    text: str
    release: tuple[int, ...] = field(compare=False)
    local: str = field(compare=False)
    _key: tuple[Any, ...] = field(compare=False, repr=False)

    def __eq__(self, other: object) -> bool:
        """Whether two spellings are one version."""
        return isinstance(other, Version) and self._key == other._key

    def __lt__(self, other: object) -> bool:
        """Whether a version comes before another."""
        return self._key < other._key if isinstance(other, Version) else NotImplemented

    def __hash__(self) -> int:
        """Of equal versions the same."""
        return hash(self._key)

    def attribute(self, name: str) -> Any:
        """An attribute as `packaging` has it; `NotImplemented` for one that is not followed."""
        numbers = dict(zip(("major", "minor", "micro"), (*self.release, 0, 0, 0), strict=False))
        plain = {
            **numbers,
            "release": self.release,
            "base_version": ".".join(map(str, self.release)),
            "local": self.local or None,
        }
        return plain.get(name, NotImplemented)


def parse(text: str) -> Version | None:
    """A version out of its text, None if it is none."""
    found = _VERSION.fullmatch(text) if len(text) < 200 else None
    if found is None:
        return None
    part = found.groupdict()
    release = tuple(int(number) for number in part["release"].split("."))
    trimmed = release
    while len(trimmed) > 1 and trimmed[-1] == 0:
        trimmed = trimmed[:-1]
    is_post = part["post"] is not None or part["post_plain"] is not None
    pre: tuple[int, ...] = (3,)  # a release comes after what is made on the way to it
    if part["pre"] is not None:
        pre = (_STAGES[part["pre"].lower()], int(part["pre_n"] or 0))
    elif part["dev"] is not None and not is_post:
        pre = (-1,)
    post = (1, int(part["post_plain"] or part["post_n"] or 0)) if is_post else (0, 0)
    dev = (0, int(part["dev_n"] or 0)) if part["dev"] is not None else (1, 0)
    local = tuple(
        (1, int(piece), "") if piece.isdigit() else (0, 0, piece)
        for piece in re.split(r"[-_.]", (part["local"] or "").lower())
        if piece
    )
    return Version(text, release, part["local"] or "", (int(part["epoch"] or 0), trimmed, pre, post, dev, local))


def installed(name: str, versions: Mapping[str, str]) -> Any:
    """What a dotted name says about an installed version; `NotImplemented` if it says nothing."""
    if name in {"sys.version_info", "sys.hexversion"}:
        return _interpreter(versions.get("python", "")) if name == "sys.version_info" else Unknown("version", name)
    package, _, rest = name.partition(".")
    if rest not in {"__version__", "version.__version__"}:
        return NotImplemented
    return _of(package, versions) or NotImplemented


def _interpreter(text: str) -> Any:
    version = parse(text)
    if version is None:
        return Unknown("version", "sys.version_info")
    major, minor, micro = (*version.release, 0, 0)[:3]
    return Interpreter(major, minor, micro)


def _of(package: str, versions: Mapping[str, str]) -> str:
    return versions.get(_DISTRIBUTIONS.get(package, package)) or versions.get(package.replace("-", "_")) or ""


def call(name: str, args: list[Any], versions: Mapping[str, str]) -> Any:
    """What a check of versions answers; `NotImplemented` if it is none, or the version is not known."""
    if not args or not isinstance(args[0], str):
        return NotImplemented
    if name in _PARSERS:
        return parse(args[0]) or Unknown("error", name)
    if name in {"importlib.metadata.version", "importlib_metadata.version"}:
        return _of(args[0], versions) or NotImplemented
    last = name.rpartition(".")[2]
    if last in _TORCH_CHECKS and name.startswith("vllm."):
        have, wanted = parse(_of("torch", versions)), parse(args[0])
        if have is None or wanted is None:
            return NotImplemented
        return have >= wanted if _TORCH_CHECKS[last] else have == wanted
    return NotImplemented
