"""What a suite says about the models that it names: which architecture an id has. Read, never run.

vLLM's `tests/models/registry.py` maps architectures to example ids; any table of that form will do: a string that is
a class name, and a call whose name ends in `ExamplesInfo` with the id first and further ids in `extras`.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

TABLES: Final = ("models/registry.py", "tests/models/registry.py")
MAX_PARENTS: Final = 6
MAX_BYTES: Final = 4_000_000
_CLASS: Final = re.compile(r"[A-Z]\w*(?:For[A-Z]\w+|Model|LMHeadModel)")
_ID: Final = re.compile(r"[\w.-]+/[\w.-]+")
_SIZE: Final = re.compile(r"(?:a?\d+(?:\.\d+)?[bmkt]|\d+x\d+(?:\.\d+)?b)")
_BY_THE_WAY: Final = {
    "instruct", "chat", "base", "it", "hf", "fp8", "awq", "gptq", "int4", "int8", "w4a16", "w8a8", "nvfp4", "mxfp4",
    "dynamic", "tiny", "random", "mini", "small", "large", "preview", "bf16", "quantized", "dev", "pt", "bnb", "gguf",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Architectures:
    """Ids and what they are.

    Attributes:
        named: Id -> architecture, as a table says it.
        families: Family of ids -> architecture, where all ids of the family in the tables have the same.
    """

    named: Mapping[str, str] = field(default_factory=dict)
    families: Mapping[str, str] = field(default_factory=dict)

    def of(self, model: str) -> tuple[str, bool] | None:
        """The architecture of an id, and whether that is a guess by its name; None where nothing is known."""
        if model in self.named:
            return self.named[model], False
        spelled = _CLASS.search(model.rsplit("/", 1)[-1])
        if spelled and any(spelled.group() == known for known in self.named.values()):
            return spelled.group(), True
        for family in families(model):
            if family in self.families:
                return self.families[family], True
        name = _letters(model.rsplit("/", 1)[-1])
        spelled_out = [(stem, kind) for kind in set(self.named.values()) if (stem := _stem(kind)) and stem in name]
        return (max(spelled_out, key=lambda pair: (len(pair[0]), pair))[1], True) if spelled_out else None


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _stem(architecture: str) -> str:
    """`llama` of `LlamaForCausalLM`; empty where so little is left that it would be found anywhere."""
    stem = _letters(re.sub(r"(?:ForCausalLM|LMHeadModel)$", "", architecture))
    return stem if len(stem) > 3 and stem != _letters(architecture) else ""


def tables(paths: Iterable[Path]) -> list[Path]:
    """Tables that lie in the given paths, or beside a folder above them; each once."""
    found: dict[Path, None] = {}
    for path in paths:
        start = path.absolute()
        for folder in [start, *start.parents][: MAX_PARENTS + 1]:
            for name in TABLES:
                table = folder / name
                if table.is_file():
                    found[table.resolve()] = None
    return list(found)


def read(files: Sequence[Path]) -> Architectures:
    """Read tables; what is no table adds nothing."""
    named: dict[str, str] = {}
    for file in files:
        for architecture, model in _entries(file):
            named.setdefault(model, architecture)
    grouped: dict[str, set[str]] = {}
    for model, architecture in named.items():
        for family in families(model):
            grouped.setdefault(family, set()).add(architecture)
    return Architectures(named, {family: min(kinds) for family, kinds in grouped.items() if len(kinds) == 1})


def families(model: str) -> Iterator[str]:
    """Families that an id belongs to, the closest first: `qwen/qwen3`, then `qwen3`."""
    owner, _, name = model.lower().rpartition("/")
    words: list[str] = []
    for word in re.split(r"[-_]", name):
        if _SIZE.fullmatch(word) or word in _BY_THE_WAY:
            break
        words.append(word)
    if words:
        stem = "-".join(words)
        yield f"{owner}/{stem}"
        yield stem


def _entries(file: Path) -> Iterator[tuple[str, str]]:
    try:
        data = file.read_bytes()
        tree = ast.parse(data) if len(data) <= MAX_BYTES else ast.parse("")
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Dict):
            continue
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and isinstance(value, ast.Call):
                yield from ((key.value, model) for model in _ids(value))


def _ids(call: ast.Call) -> Iterator[str]:
    """The example id of a table's entry, then those of its extras."""
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    if not name.endswith("ExamplesInfo"):
        return
    extras = [keyword.value for keyword in call.keywords if keyword.arg in {"default", "extras"}]
    for value in (*call.args[:2], *extras):
        texts = value.values if isinstance(value, ast.Dict) else [value]
        for text in texts:
            if isinstance(text, ast.Constant) and isinstance(text.value, str) and _ID.fullmatch(text.value):
                yield text.value
