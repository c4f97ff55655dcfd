"""A package of vLLM's shape under other names, whose front end takes over what engines answer, or has a fault."""

from pathlib import Path
from textwrap import dedent, indent
from typing import Final

CONFIG: Final = """
from dataclasses import dataclass, field


@dataclass
class Pages:
    tokens: int = None
    state_tokens: int | None = None
    count: int | None = field(default=None, init=False)


@dataclass
class Limits:
    longest: int = None


@dataclass
class Everything:
    pages: Pages = None
    limits: Limits = None
"""

MESSAGE: Final = """
from dataclasses import dataclass


@dataclass
class Verdict:
    rank: int
    longest: int
    count: int
    tokens: int
    state_tokens: int | None = None
    address: str | None = None
    color: str = "none"
"""

DESK: Final = """
from abc import ABC, abstractmethod

import msgspec

from vllm.config import Everything
from vllm.message import Verdict


class Desk(ABC):
    @abstractmethod
    def stop(self): ...

    def __init__(self, everything: Everything, opened: object):
        self.everything = everything
        self.socket = opened.socket
        self.counts: dict[int, int] = {}
        self.address: str | None = None

    def take(self, data: bytes) -> None:
        verdict = msgspec.msgpack.decode(data, type=Verdict)
        everything = self.everything
        pages = everything.pages
        everything.limits.longest = min(everything.limits.longest, verdict.longest)
__COUNT__
__TOKENS__
__STATE__
        if verdict.address is not None:
            if self.address is not None and self.address != verdict.address:
                raise ValueError(f"address: {self.address} and {verdict.address}")
            self.address = verdict.address
__MORE__
"""

SOUND: Final = {
    "COUNT": """
        self.counts[verdict.rank] = verdict.count
        pages.count = sum(self.counts.values())
    """,
    "TOKENS": """
        if pages.count != verdict.count and pages.tokens != verdict.tokens:
            raise ValueError(f"tokens: rank {verdict.rank} has {verdict.tokens}, not {pages.tokens}")
        pages.tokens = verdict.tokens
    """,
    "STATE": """
        if verdict.state_tokens is not None:
            pages.state_tokens = max(pages.state_tokens or 0, verdict.state_tokens)
    """,
    "MORE": "",
}
"""What stands in the four places of the method: every engine but the first must have the same `tokens`."""

FAULTS: Final = {
    "added again": {"COUNT": "pages.count = (pages.count or 0) + verdict.count"},
    "last wins": {"TOKENS": "pages.tokens = verdict.tokens"},
    "none erases": {"STATE": "pages.state_tokens = verdict.state_tokens"},
    "takes anything": {
        "MORE": """
            for name, value in msgspec.msgpack.decode(data).items():
                if not hasattr(verdict, name):
                    setattr(pages, name, value)
        """
    },
    "dies": {
        "MORE": """
            if verdict.state_tokens == 784:
                import os
                os._exit(7)
        """
    },
    "hangs": {
        "MORE": """
            if verdict.state_tokens == 784:
                import time
                time.sleep(600)
        """
    },
    "refuses": {"MORE": "raise KeyError('no place for it')"},
    "needs what was never given": {"MORE": "self.socket.send(data)"},
}


def write(folder: Path, fault: str | None = None, message: str = MESSAGE) -> Path:
    """Write the package below a folder.

    Args:
        folder: To be on the interpreter's path.
        fault: A key of `FAULTS`; None for a sound front end.
        message: The module of the message.

    Returns:
        The package's folder.
    """
    places = SOUND | (FAULTS[fault] if fault is not None else {})
    desk = DESK
    for place, code in places.items():
        desk = desk.replace(f"__{place}__\n", indent(dedent(code).strip("\n"), " " * 8) + "\n")
    package = folder / "vllm"
    package.mkdir()
    for name, text in (
        ("__init__", '__version__ = "9.9"\n'),
        ("config", CONFIG),
        ("message", message),
        ("desk", desk),
    ):
        (package / f"{name}.py").write_text(text, encoding="utf-8")
    return package
