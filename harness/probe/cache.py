"""Answers on disk: what an engine said about a configuration once, it says again. Bounded; safe between processes."""

import hashlib
import json
import sqlite3
import time
import zlib
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final, assert_never

from staticfire.harness.files import default_cache_dir
from staticfire.harness.probe.base import (
    Accepted,
    Crashed,
    Note,
    NotKnown,
    Outcome,
    Rejected,
    Seen,
    Settled,
    Undecided,
)

FORMAT: Final = 3
DEFAULT_BYTES: Final = 256 * 2**20


def key_of(parts: Mapping[str, Any]) -> str:
    """Hash what decides an answer. Keys are sorted; a tuple counts as a list."""
    text = json.dumps({"format": FORMAT, **parts}, sort_keys=True, default=str, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def encode(outcome: Outcome) -> bytes:
    """An outcome as compressed JSON."""
    notes = [[note.message, note.origin] for note in getattr(outcome, "notes", ())]
    match outcome:
        case Accepted(resolved, runtime):
            capacity = outcome.capacity
            room = capacity.because if isinstance(capacity, NotKnown) else dict(capacity.values)
            body: list[Any] = ["accepted", dict(resolved), dict(runtime), notes, room]
        case Undecided(resolved, worker):
            body = ["undecided", dict(resolved), worker.because, notes]
        case Rejected(kind, message, origin, rules, phase):
            about = [[one.field, one.value, one.default] for one in outcome.values]
            further = [dict(outcome.resolved), outcome.doubt]
            body = ["rejected", kind, message, origin, list(rules), phase, notes, about, *further]
        case Crashed(detail, lasting):
            body = ["crashed", detail, lasting]
        case _:
            assert_never(outcome)
    return zlib.compress(json.dumps(body).encode(), 1)


def decode(blob: bytes) -> Outcome | None:
    """The outcome of `encode`; None for bytes that are not of it."""
    try:
        body = json.loads(zlib.decompress(blob))
        match body:
            case ["accepted", dict(resolved), dict(runtime), list(notes), (str() | dict()) as room]:
                capacity = NotKnown(room) if isinstance(room, str) else Settled(room)
                return Accepted(resolved, runtime, _notes(notes), capacity)
            case ["undecided", dict(resolved), str(because), list(notes)]:
                return Undecided(resolved, NotKnown(because), _notes(notes))
            case [
                "rejected",
                ("field" | "rule") as kind,
                str(message),
                str(origin),
                list(rules),
                ("front end" | "worker" | "capacity") as phase,
                list(notes),
                about,
                dict(resolved),
                str(doubt),
            ]:
                seen = tuple(Seen(str(name), value, bool(default)) for name, value, default in about)
                return Rejected(kind, message, origin, tuple(rules), phase, _notes(notes), seen, resolved, doubt)
            case ["crashed", str(detail), bool(lasting)]:
                return Crashed(detail, lasting)
    except (ValueError, TypeError, zlib.error):
        pass
    return None


def _notes(pairs: Iterable[Any]) -> tuple[Note, ...]:
    return tuple(Note(str(message), str(origin)) for message, origin in pairs)


class AnswerCache:
    """Key -> outcome in one SQLite file.

    A file that is damaged, locked or of another format is as good as empty: answers can always be asked for again.
    """

    def __init__(self, path: Path | None = None, limit: int = DEFAULT_BYTES) -> None:
        """Open or make the file.

        Args:
            path: The file; by default `probe/answers.sqlite` in the cache folder.
            limit: Bytes of answers to keep; the least recently used go first.
        """
        self.path = path or default_cache_dir() / "probe" / "answers.sqlite"
        self.limit = limit
        self.hits = 0
        self.misses = 0
        self._connection = self._open()

    def get(self, keys: Iterable[str]) -> dict[str, Outcome]:
        """The outcomes that are known, by key."""
        wanted = list(dict.fromkeys(keys))
        found: dict[str, Outcome] = {}
        with suppress(sqlite3.Error):
            for start in range(0, len(wanted), 500):
                part = wanted[start : start + 500]
                marks = ",".join("?" * len(part))
                rows = self._connection.execute(f"SELECT key, answer FROM answers WHERE key IN ({marks})", part)  # noqa: S608 -- only question marks are inserted
                for key, blob in rows:
                    outcome = decode(blob)
                    if outcome is not None:
                        found[key] = outcome
            now = int(time.time())
            with self._connection:
                self._connection.executemany("UPDATE answers SET used = ? WHERE key = ?", [(now, key) for key in found])
        self.hits += len(found)
        self.misses += len(wanted) - len(found)
        return found

    def put(self, answers: Mapping[str, Outcome]) -> None:
        """Keep outcomes, all but crashes that may not happen again."""
        now = int(time.time())
        rows = [
            (key, blob, len(blob), now)
            for key, outcome in answers.items()
            if not (isinstance(outcome, Crashed) and not outcome.lasting)
            for blob in [encode(outcome)]
        ]
        with suppress(sqlite3.Error), self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)", rows)
            self._trim()

    def close(self) -> None:
        """Close the file."""
        with suppress(sqlite3.Error):
            self._connection.close()

    def _trim(self) -> None:
        total = self._connection.execute("SELECT COALESCE(SUM(size), 0) FROM answers").fetchone()[0]
        if total <= self.limit:
            return
        # Down to nine tenths, or each further answer would trim again.
        spare = total - self.limit * 9 // 10
        doomed = []
        with closing(self._connection.execute("SELECT key, size FROM answers ORDER BY used, key")) as rows:
            for key, size in rows:
                if spare <= 0:
                    break
                doomed.append((key,))
                spare -= size
        self._connection.executemany("DELETE FROM answers WHERE key = ?", doomed)

    def _open(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return _prepared(str(self.path))
        except sqlite3.DatabaseError:
            with suppress(OSError):
                self.path.unlink()
            with suppress(sqlite3.Error):
                return _prepared(str(self.path))
        except OSError:
            pass
        return _prepared(":memory:")  # nowhere to write: the answers live as long as this run


def _prepared(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=10)
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version != FORMAT:
            connection.execute("DROP TABLE IF EXISTS answers")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer BLOB, size INTEGER, used INTEGER)"
        )
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.commit()
    except sqlite3.Error:
        connection.close()
        raise
    return connection
