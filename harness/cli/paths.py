"""Paths given on the command line."""

from pathlib import Path
from typing import Any

import click


class NamedPath(click.Path):
    """A path that need not exist yet. The empty text is refused: it would silently be the current folder."""

    def __init__(self, *, file_okay: bool = True) -> None:
        """Take a folder; a file too unless `file_okay` is off."""
        super().__init__(file_okay=file_okay, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse the empty text, then do as `click.Path` does."""
        if value == "":
            self.fail("the path is empty", param, ctx)
        return super().convert(value, param, ctx)
