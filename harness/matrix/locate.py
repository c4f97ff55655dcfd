"""Lines of a TOML file by key path; the standard parser keeps none."""

import re
from collections.abc import Iterator

Path = tuple[str | int, ...]

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?")
_KEY = re.compile(r"\s*((?:[\w-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[\w-]+|\"[^\"]*\"|'[^']*'))*)\s*=")
_STRINGS = re.compile(r'"""|\'\'\'|"(?:[^"\\]|\\.)*"|\'[^\']*\'|#.*|[\[\]{}]')


class Lines:
    """Where each key of a TOML text stands."""

    def __init__(self, text: str) -> None:
        """Scan the text; it must be valid TOML."""
        self._lines = text.splitlines()
        self._starts: dict[Path, int] = {}
        self._scan()

    def of(self, *path: str | int) -> int:
        """The line, from 1 on, of the longest known beginning of a path such as `("constraint", 2, "when")`."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._starts:
                start = self._starts[path[:length]]
                return self._inside(start, path[length:])
        return 1

    def _inside(self, start: int, rest: Path) -> int:
        """Look for the rest of a path inside an inline table or array that begins on line `start`."""
        names = [part for part in rest if isinstance(part, str)]
        following = [line for line in self._starts.values() if line > start]
        stop = min(following, default=len(self._lines) + 1)
        for name in reversed(names):
            for number in range(start, stop):
                if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", self._lines[number - 1]):
                    return number
        return start

    def _scan(self) -> None:
        table: Path = ()
        counts: dict[Path, int] = {}
        for number, line in self._statements():
            if header := _HEADER.match(line):
                names = _split(header[2])
                table = self._resolve(names[:-1], counts)
                table += (names[-1],)
                if header[1] == "[[":
                    self._starts.setdefault(table, number)
                    counts[table] = counts.get(table, -1) + 1
                    table += (counts[table],)
                self._starts.setdefault(table, number)
            elif key := _KEY.match(line):
                names = _split(key[1])
                for length in range(1, len(names) + 1):
                    self._starts.setdefault(table + names[:length], number)

    @staticmethod
    def _resolve(names: tuple[str, ...], counts: dict[Path, int]) -> Path:
        """`[a.b]` after `[[a]]` speaks of the last element of `a`."""
        path: Path = ()
        for name in names:
            path += (name,)
            if path in counts:
                path += (counts[path],)
        return path

    def _statements(self) -> Iterator[tuple[int, str]]:
        """Lines that begin a statement: not those inside an open bracket or a multi-line string."""
        depth, quote = 0, ""
        for number, line in enumerate(self._lines, 1):
            begins = depth == 0 and not quote
            if begins:
                yield number, line
            position = 0
            if begins and (header := _HEADER.match(line)):
                position = header.end()  # the brackets of a header open nothing
            depth, quote = _follow(line, position, depth, quote)


def _follow(line: str, position: int, depth: int, quote: str) -> tuple[int, str]:
    """Bracket depth and open multi-line quote after a line."""
    while position < len(line):
        if quote:
            end = line.find(quote, position)
            if end < 0:
                return depth, quote
            position, quote = end + 3, ""
            continue
        token = _STRINGS.search(line, position)
        if token is None:
            break
        position = token.end()
        if token[0] in {'"""', "'''"}:
            quote = token[0]
        else:
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
    return depth, quote


def _split(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[\w-]+", dotted))
