"""Text to token ids and back, from a checkpoint's `tokenizer.json`."""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer as Backend

from staticfire.engine.errors import CheckpointError


class Tokenizer:
    """A fast tokenizer; special tokens are added on the way in as the file says, and skipped on the way out."""

    def __init__(self, path: Path) -> None:
        """Read `tokenizer.json`.

        Raises:
            CheckpointError: The file is damaged.
        """
        try:
            self.backend = Backend.from_file(str(path))
        except Exception as error:
            raise CheckpointError(f"{path}: not a tokenizer: {error}") from error

    def encode(self, text: str) -> list[int]:
        """Token ids of a text."""
        ids: list[int] = self.backend.encode(text).ids
        return ids

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of token ids."""
        text: str = self.backend.decode(list(token_ids), skip_special_tokens=True)
        return text


def load_tokenizer(folder: Path) -> Tokenizer | None:
    """The tokenizer of a checkpoint folder; None where it has no `tokenizer.json`."""
    path = folder / "tokenizer.json"
    return Tokenizer(path) if path.exists() else None
