"""Results of a scan kept on disk: per file, valid while the file and everything it imports are unchanged."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from staticfire.harness.files import write_whole
from staticfire.harness.scan import plugin
from staticfire.harness.scan.base import Configuration, Guard, Location, Negative, ScanConfig, Typed, Unknown, Unread
from staticfire.harness.scan.results import Contribution, FileResult
from staticfire.harness.stamps import Stamp

Entry = tuple[Mapping[Path, Stamp], FileResult]
"""What was read from a file, and every file that it depends on, as it was before."""
_UNKNOWN = "\0unknown"
_LARGE = "\0int"
_PLAIN, _ESCAPED, _MARK = b"p", b"e", "\0"
"""First byte of what is kept, whose texts are as they are, or else in hexadecimal digits behind a mark."""
_SUM = 32
_KEEP = 8
"""Caches of other roots or settings that are kept beside the current one."""


def own_digest() -> bytes:
    """A digest of the scanner's own source, and of the plugin's: another scanner reads other things."""
    digest = hashlib.sha256(plugin.digest())
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.digest()


class Packer:
    """Turns results into plain values that share equal parts, and back."""

    def __init__(self) -> None:
        self._tables: dict[str, list[Any]] = {"locations": [], "typed": [], "names": [], "guards": [], "negatives": []}
        self._indices: dict[str, dict[Any, int]] = {name: {} for name in self._tables}

    def pack(self, result: FileResult) -> list[Any]:
        """One file's result."""
        return [
            [self._contribution(item) for item in result.contributions],
            [[self._location(where), count] for where, count in result.truncated],
            [[item.path, item.line, item.why] for item in result.unread],
        ]

    @property
    def tables(self) -> dict[str, list[Any]]:
        """What packed results refer to."""
        return self._tables

    def _index(self, table: str, key: Any, value: Any) -> int:
        known = self._indices[table].get(key)
        if known is None:
            known = self._indices[table][key] = len(self._tables[table])
            self._tables[table].append(value)
        return known

    def _location(self, where: Location) -> int:
        row = (where.path, where.line, where.column, where.end_line, where.end_column)
        return self._index("locations", row, row)

    def _typed(self, name: str, typed: Typed) -> int:
        value = _out(typed.value)
        where = self._location(typed.where)
        key = (name, repr(value), where, typed.layer)
        return self._index("typed", key, [name, value, where, typed.layer])

    def _guard(self, guard: Guard) -> int:
        row = (guard.kind, guard.text, self._location(guard.where), guard.decided)
        return self._index("guards", row, row)

    def _negative(self, negative: Negative | None) -> int | None:
        if negative is None:
            return None
        row = (negative.exceptions, negative.match, self._location(negative.where))
        return self._index("negatives", row, row)

    def _contribution(self, item: Contribution) -> list[Any]:
        made = item.configuration
        return [
            self._location(item.where), item.form, item.function, item.fallback, _out(made.model),
            [self._typed(name, typed) for name, typed in made.keywords.items()], made.params, made.missing, made.caller,
            made.assumed, [self._guard(guard) for guard in made.guards], self._negative(made.negative), made.patched,
            [self._typed(name, typed) for name, typed in made.front_end.items()], made.words,
        ]  # fmt: skip


class Unpacker:
    """Turns packed results back into values.

    Args:
        tables: What they refer to.
    """

    def __init__(self, tables: Mapping[str, list[Any]]) -> None:
        self._locations = [Location(*row) for row in tables["locations"]]
        self._typed = [(row[0], Typed(_in(row[1]), self._locations[row[2]], row[3])) for row in tables["typed"]]
        self._guards = [Guard(row[0], row[1], self._locations[row[2]], row[3]) for row in tables["guards"]]
        self._negatives = [Negative(tuple(row[0]), row[1], self._locations[row[2]]) for row in tables["negatives"]]

    def unpack(self, packed: list[Any]) -> FileResult:
        """One file's result."""
        return FileResult(
            tuple(self._contribution(row) for row in packed[0]),
            tuple((self._locations[where], count) for where, count in packed[1]),
            tuple(Unread(*row) for row in packed[2]),
        )

    def _contribution(self, row: list[Any]) -> Contribution:
        configuration = Configuration(
            model=_in(row[4]),
            keywords=dict(self._typed[index] for index in row[5]),
            params=row[6],
            complete=not row[7],
            missing=row[7],
            caller=row[8],
            assumed=tuple(row[9]),
            guards=tuple(self._guards[index] for index in row[10]),
            negative=None if row[11] is None else self._negatives[row[11]],
            patched=row[12],
            front_end=dict(self._typed[index] for index in row[13]),
            words=None if row[14] is None else tuple(row[14]),
        )
        return Contribution(self._locations[row[0]], row[1], row[2], configuration, row[3])


def _out(value: Any) -> Any:
    if isinstance(value, Unknown):
        return {_UNKNOWN: [value.reason, value.detail, [_out(item) for item in value.candidates]]}
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): _out(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_out(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        return {_LARGE: hex(value)}  # in decimals Python itself refuses the largest
    return value


def _in(value: Any) -> Any:
    if isinstance(value, dict):
        if _UNKNOWN in value:
            reason, detail, candidates = value[_UNKNOWN]
            return Unknown(reason, detail, tuple(_in(item) for item in candidates))
        if _LARGE in value:
            return int(value[_LARGE], 16)
        return {key: _in(item) for key, item in value.items()}
    return [_in(item) for item in value] if isinstance(value, list) else value


def encode(document: Any) -> bytes:
    """Bytes of plain values, whatever their texts: a file's name need not be UTF-8, nor a literal Unicode."""
    try:
        return _PLAIN + msgspec.msgpack.encode(document)
    except UnicodeEncodeError:
        return _ESCAPED + msgspec.msgpack.encode(_texts(document, _escape))


def decode(data: bytes) -> Any:
    """What `encode` was given, tuples as lists.

    Raises:
        ValueError: It is none of ours.
    """
    document = msgspec.msgpack.decode(data[1:])
    return document if data[:1] == _PLAIN else _texts(document, _unescape)


def _texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {_texts(key, change): _texts(item, change) for key, item in value.items()}
    return [_texts(item, change) for item in value] if isinstance(value, list | tuple) else value


def _escape(text: str) -> str:
    if text.isascii() and not text.startswith(_MARK):
        return text
    return _MARK + text.encode("utf-32-le", "surrogatepass").hex()


def _unescape(text: str) -> str:
    if not text.startswith(_MARK):
        return text
    return bytes.fromhex(text[len(_MARK) :]).decode("utf-32-le", "surrogatepass")


@dataclass(slots=True)
class Cache:
    """What an earlier scan found.

    Attributes:
        path: Its file, None if nothing is kept.
        listing: Digest of the files' names then.
        files: File -> (its dependencies with their stamps, packed result).
    """

    path: Path | None
    listing: bytes = b""
    files: dict[str, tuple[list[tuple[str, Stamp]], list[Any]]] = field(default_factory=dict)
    tables: dict[str, list[Any]] = field(default_factory=dict)

    @classmethod
    def load(cls, config: ScanConfig, roots: Iterable[Path]) -> "Cache":
        """Read the cache that belongs to some roots and settings."""
        if config.cache_dir is None:
            return cls(None)
        digest = hashlib.sha256(own_digest())
        facts = (
            config.platform,
            config.capability,
            config.device_count,
            sorted(config.versions.items()),
            sorted(config.constants.items()),
            config.limits,
        )
        digest.update(repr((facts, str(Path.cwd()), [str(root) for root in roots])).encode())
        path = config.cache_dir / f"scan-{digest.hexdigest()[:24]}.msgpack"
        try:
            data = path.read_bytes()
            if hashlib.sha256(data[_SUM:]).digest() != data[:_SUM]:
                return cls(path)
            raw = decode(data[_SUM:])
            files = {
                name: ([(dep, Stamp(*row)) for dep, *row in deps], packed)
                for name, (deps, packed) in raw["files"].items()
            }
            return cls(path, raw["listing"], files, raw["tables"])
        except (OSError, msgspec.DecodeError, KeyError, TypeError, ValueError):
            return cls(path)

    def save(self, listing: bytes, entries: Mapping[str, Entry]) -> None:
        """Write what a scan found, but of files that were changed meanwhile; one that cannot be written is no fault."""
        if self.path is None:
            return
        packer = Packer()
        known: dict[tuple[Path, Stamp], bool] = {}
        files: dict[str, Any] = {}
        for name, (dependencies, result) in entries.items():
            if all(_holds(path, then, known) for path, then in dependencies.items()):
                rows = [[str(path), *astuple(then)] for path, then in dependencies.items()]
                files[name] = [rows, packer.pack(result)]
        data = encode({"listing": listing, "tables": packer.tables, "files": files})
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.path, hashlib.sha256(data).digest() + data)
            others = sorted(self.path.parent.glob("scan-*.msgpack"), key=lambda item: item.stat().st_mtime_ns)
            for old in others[:-_KEEP]:
                old.unlink(missing_ok=True)
        except OSError:
            return

    def valid(self, listing: bytes) -> dict[str, Entry]:
        """The results that still hold."""
        if listing != self.listing or not self.files:
            return {}
        known: dict[tuple[Path, Stamp], bool] = {}
        paths = {path: Path(path) for rows, _ in self.files.values() for path, _ in rows}
        unpacker = Unpacker(self.tables)
        found: dict[str, Entry] = {}
        for name, (rows, packed) in self.files.items():
            dependencies = {paths[path]: then for path, then in rows}
            if all(_holds(path, then, known) for path, then in dependencies.items()):
                found[name] = dependencies, unpacker.unpack(packed)
        return found


def _holds(path: Path, then: Stamp, known: dict[tuple[Path, Stamp], bool]) -> bool:
    """Whether a file is in the state that it was in; each one is looked at once."""
    key = (path, then)
    if key not in known:
        known[key] = then.holds(path)
    return known[key]
