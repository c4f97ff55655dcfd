"""`vllm serve --config FILE`: what the file says is part of the command, and what is typed wins over it."""

import json
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, ScalarNode

from staticfire.harness.scan import flags
from staticfire.harness.scan.base import Configuration, Limits, Location, Typed, Unknown
from staticfire.harness.scan.budget import TooLarge
from staticfire.harness.scan.documents import LOADER, plain_node
from staticfire.harness.scan.files import shown
from staticfire.harness.scan.results import FileResult, plain
from staticfire.harness.scan.values import Text
from staticfire.harness.stamps import Stamps

SUFFIXES = (".yaml", ".yml")
"""The engine takes no others."""
REASON = "config file"
_BYTES = 1_000_000

Said = Mapping[str, Typed]
"""Keyword -> what a file says."""


@dataclass(slots=True)
class ConfigFiles:
    """Files that commands name with `--config`, looked for where the command may have been started.

    These are the current folder, the folder of the script and those above it, as far as they lie inside the paths that
    are scanned: what a suite names elsewhere is not opened.

    Args:
        roots: The paths that are scanned.
        root: Locations name files below it by their path from it.
        stamps: Takes the state of each file before it is read.
    """

    roots: Sequence[Path]
    root: Path
    stamps: Stamps = field(default_factory=Stamps)
    _inside: tuple[Path, ...] = ()
    _read: dict[Path, Said | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Where files may lie: a path that is a file stands for its folder."""
        self._inside = tuple(path.resolve() if path.is_dir() else path.parent.resolve() for path in self.roots)

    def complete(self, result: FileResult, script: Path) -> tuple[FileResult, set[Path]]:
        """Put in what the files say that a script's commands name.

        Returns:
            The result, and every file that it depends on, there or not.
        """
        if not any("config" in item.configuration.front_end for item in result.contributions):
            return result, set()
        asked: set[Path] = set()
        made = tuple(
            replace(item, configuration=self._with(item.configuration, script, asked)) for item in result.contributions
        )
        return replace(result, contributions=made), asked

    def _with(self, item: Configuration, script: Path, asked: set[Path]) -> Configuration:
        if "config" not in item.front_end:
            return item
        named = item.front_end["config"].value
        said = self._find(named, script, asked) if isinstance(named, str) else None
        if said is None:
            missing = item.missing or (named.reason if isinstance(named, Unknown) else REASON)
            unnamed = Unknown(REASON, str(named)) if item.model is None else item.model
            return replace(item, model=unnamed, complete=False, missing=missing, words=None)
        keywords = {name: typed for name, typed in said.items() if name not in flags.FRONT_END}
        own = keywords.pop("model", None)
        model = own.value if item.model is None and own is not None else item.model
        return replace(
            item,
            model=model,
            keywords={**keywords, **item.keywords},
            front_end={**{name: said[name] for name in said if name in flags.FRONT_END}, **item.front_end},
            words=None,
        )

    def _find(self, named: str, script: Path, asked: set[Path]) -> Said | None:
        """What the file says; None if there is none, or several that differ, or none that can be read."""
        if not named.endswith(SUFFIXES) or "\0" in named:
            return None
        found: list[Said] = []
        for candidate in dict.fromkeys(folder / named for folder in self._folders(script)):
            asked.add(candidate)
            if candidate not in self._read and not self._take(candidate):
                continue
            said = self._read[candidate]
            if said is None:
                return None
            found.append(said)
        values = [{name: typed.value for name, typed in said.items()} for said in found]
        return found[0] if found and all(one == values[0] for one in values) else None

    def _folders(self, script: Path) -> Iterator[Path]:
        yield self.root
        for folder in script.parents[:14]:
            if not any(folder.resolve().is_relative_to(root) for root in self._inside):
                break
            yield folder

    def _take(self, path: Path) -> bool:
        """Read a file, if there is one where it may be read."""
        self.stamps.of(path)
        try:
            real = path.resolve()
            status = real.stat()
        except (OSError, RuntimeError):
            return False
        if not stat.S_ISREG(status.st_mode) or not any(real.is_relative_to(root) for root in self._inside):
            return False
        self._read[path] = read(path, shown(path, self.root)) if status.st_size <= _BYTES else None
        return True


def read(path: Path, name: str) -> Said | None:
    """What a file says, as the engine's command line reads it; None if it is no mapping.

    Args:
        path: The file.
        name: As locations name it.
    """
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), LOADER)
    except (OSError, yaml.YAMLError, ValueError, RecursionError):
        return None
    if not isinstance(root, MappingNode):
        return None
    try:
        budget = Limits().budget()
        words = [word for key, value in root.value for word in _words(key, plain_node(value, budget=budget), name)]
    except (TypeError, ValueError, RecursionError, TooLarge):
        return None
    parsed = flags.parse(words)
    whole = Location(name, 1, 1, 1, 1)
    return {
        keyword: Typed(plain(value), parsed.where.get(keyword, whole), "call")
        for keyword, value in parsed.keywords.items()
    }


def _words(key: Any, value: Any, name: str) -> list[str]:
    """A key and its value as words of a command line."""
    if not isinstance(key, ScalarNode):
        raise TypeError(f"a key that is no scalar: {key.tag}")
    start, end = key.start_mark, key.end_mark
    where = Location(name, start.line + 1, start.column + 1, end.line + 1, end.column + 1)
    if isinstance(value, bool):
        return [Text(f"--{key.value}" if value else f"--no-{key.value}", where)]
    flag = Text(f"--{key.value}", where)
    if isinstance(value, list):
        return [flag, *(str(item) for item in value)] if value else []
    return [flag, json.dumps(value) if isinstance(value, dict) else str(value)]


__all__ = ["ConfigFiles", "read"]
