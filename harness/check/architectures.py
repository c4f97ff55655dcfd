"""What a suite says about the models that it names: which architecture an id has. Read, never run.

vLLM's `tests/models/registry.py` maps architectures to example ids; any table of that form will do: a string that is
a class name, and a call whose name ends in `ExamplesInfo` with the id first and further ids in `extras`. Where the
call has a `speculative_model`, the architecture is that model's, and the id first is the one it drafts for.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Final

TABLES: Final = ("models/registry.py", "tests/models/registry.py")
MAX_PARENTS: Final = 6
MAX_BYTES: Final = 4_000_000
MAX_KINDS: Final = 12
"""Architectures that one name can fit; with more it says nothing."""
_CLASS: Final = re.compile(r"[A-Z]\w*(?:For[A-Z]\w+|Model|LMHeadModel)")
_ID: Final = re.compile(r"[\w.-]+/[\w.-]+")
_SIZE: Final = re.compile(r"(?:a?\d+(?:\.\d+)?[bmkt]|\d+x\d+(?:\.\d+)?b)")
_WHOLE: Final = ("ForCausalLM", "ForConditionalGeneration")
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_DRAFT: Final = re.compile(r"eagle|dflash|dspark|speculator|medusa|xpress|(?<![a-z])mtp(?![a-z])")
"""Names of models that only draft for others."""
_BY_THE_WAY: Final = {
    "instruct", "chat", "base", "it", "hf", "fp8", "awq", "gptq", "int4", "int8", "w4a16", "w8a8", "nvfp4", "mxfp4",
    "dynamic", "tiny", "random", "mini", "small", "large", "preview", "bf16", "quantized", "dev", "pt", "bnb", "gguf",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fit:
    """What an id may be.

    Attributes:
        kinds: Architectures, the likeliest first; at least one.
        guessed: Whether they are a guess by the name.
    """

    kinds: tuple[str, ...]
    guessed: bool


@dataclass(frozen=True, slots=True)
class Architectures:
    """Ids and what they are.

    Attributes:
        named: Id -> architecture, as a table says it.
        families: Family of ids -> architectures that ids of the family have in the tables.
        branches: First words of families -> architectures of all that start so.
    """

    named: Mapping[str, str] = field(default_factory=dict)
    families: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    branches: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, model: str) -> Fit | None:
        """The architecture of an id, or those that its name fits; None where nothing is known."""
        if model in self.named:
            return Fit((self.named[model],), guessed=False)
        name = model.rsplit("/", 1)[-1]
        spelled = _CLASS.search(name)
        if spelled and any(spelled.group() == known for known in self.named.values()):
            return Fit((spelled.group(),), guessed=True)
        if _DRAFT.search(name.lower()):
            return None  # its name says what it drafts for, not what it is
        stem = max((kind for kind in set(self.named.values()) if _spelled(kind, name)), key=_by_stem, default="")
        for family in families(model):
            if kinds := self.families.get(family):
                return Fit(_first(stem, kinds) if stem in kinds else kinds, guessed=True)
        return Fit(self._near(stem, model), guessed=True) if stem else None

    def _near(self, stem: str, model: str) -> tuple[str, ...]:
        """What an id can be of which only first words are known, and an architecture that it spells."""
        words, form = _words(model), _form(model)
        starts = ["-".join(words[:count]) for count in range(len(words), 0, -1)]
        if form and (alike := next(filter(None, (self.families.get(f"{start}-{form}") for start in starts)), None)):
            return alike
        every = {kind for kinds in self.branches.values() for kind in kinds if kind.endswith(_WHOLE)}
        akin = sorted((kind for kind in every if _letters(kind).startswith(_stem(stem))), key=_shortest)
        near = next(filter(None, map(self.branches.get, starts)), ())
        return tuple(dict.fromkeys((stem, *akin, *near)))[:MAX_KINDS]


def _first(kind: str, kinds: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((kind, *kinds)))[:MAX_KINDS]


def _by_stem(kind: str) -> tuple[int, str]:
    return len(_stem(kind)), kind


def _shortest(kind: str) -> tuple[int, str]:
    return len(kind), kind


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _stem(architecture: str) -> str:
    """`llama` of `LlamaForCausalLM`; empty where so little is left that it would be found anywhere."""
    stem = _letters(re.sub(r"(?:ForCausalLM|LMHeadModel)$", "", architecture))
    return stem if len(stem) > 3 and stem != _letters(architecture) else ""


def _spelled(architecture: str, name: str) -> bool:
    """Whether the name of an architecture ends where a word of an id does: `gemma2` is not in `gemma-2b`."""
    stem = _stem(architecture)
    if not stem:
        return False
    end = r"(?![a-z0-9])" if stem[-1].isdigit() else r"(?![a-z])"
    return re.search(r"[^a-z0-9]?".join(map(re.escape, stem)) + end, name.lower()) is not None


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
    drafts: dict[str, str] = {}
    for file in files:
        for architecture, model, is_draft in _entries(file):
            (drafts if is_draft else named).setdefault(model, architecture)
    # A model can hold its own draft; asked about by its name it is the model.
    drafts = {model: kind for model, kind in drafts.items() if model not in named}
    named |= drafts
    grouped: dict[str, dict[str, None]] = {}
    branches: dict[str, dict[str, None]] = {}
    for model, architecture in sorted(named.items()):
        if model in drafts:
            continue
        for family in families(model):
            grouped.setdefault(family, {})[architecture] = None
        words = _words(model)
        for count in range(1, len(words) + 1):
            branches.setdefault("-".join(words[:count]), {})[architecture] = None
    return Architectures(named, _sorted(grouped), _sorted(branches))


def _sorted(groups: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Groups that say something: one of very many kinds is of none."""
    return {name: tuple(sorted(kinds)) for name, kinds in groups.items() if len([*kinds]) <= MAX_KINDS}


def families(model: str) -> Iterator[str]:
    """Families that an id belongs to, the closest first: `qwen/qwen3`, then `qwen3`.

    Active parameters tell a mixture of experts from a dense model of the same name, so an id with them belongs first
    to `qwen/qwen3-30b-a3b`, `qwen3-30b-a3b`, and `qwen3-#b-a#b`.
    """
    owner = model.lower().rpartition("/")[0]
    if not (words := _words(model)):
        return
    stem = "-".join(words)
    if form := _form(model):
        sized = "-".join((stem, *_sizes(model)))
        yield from (f"{owner}/{sized}", sized, f"{stem}-{form}")
    yield f"{owner}/{stem}"
    yield stem


def _form(model: str) -> str:
    """`#b-a#b` of an id that tells how many parameters are active; empty for others."""
    sizes = _sizes(model)
    return "-".join(_NUMBER.sub("#", size) for size in sizes) if any(size[0] == "a" for size in sizes) else ""


def _words(model: str) -> list[str]:
    """The words of an id's name up to a size or a word that says how it was trained or stored."""
    return [*takewhile(lambda word: not (_SIZE.fullmatch(word) or word in _BY_THE_WAY), _split(model))]


def _sizes(model: str) -> list[str]:
    """The sizes that follow those words at once: `30b`, `a3b`."""
    rest = _split(model)[len(_words(model)) :]
    return [*takewhile(lambda word: _SIZE.fullmatch(word) is not None, rest)]


def _split(model: str) -> list[str]:
    """The words of an id's name, without its owner where that is repeated: `nvidia/NVIDIA-Nemotron`."""
    owner, _, name = model.lower().rpartition("/")
    words = re.split(r"[-_]", name)
    repeated = len(words) > 1 and words[0] == owner and _SIZE.fullmatch(words[1]) is None
    return words[1:] if repeated else words


def _entries(file: Path) -> Iterator[tuple[str, str, bool]]:
    """Architecture, id, and whether the id is that of a speculative model."""
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
                yield from ((key.value, model, is_draft) for model, is_draft in _ids(value))


def _ids(call: ast.Call) -> Iterator[tuple[str, bool]]:
    """The speculative model of a table's entry, if there is one; else the example id, then those of its extras."""
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    if not name.endswith("ExamplesInfo"):
        return
    drafts = [keyword.value for keyword in call.keywords if keyword.arg == "speculative_model"]
    extras = [keyword.value for keyword in call.keywords if keyword.arg in {"default", "extras"}]
    for value in drafts or (*call.args[:2], *extras):
        texts = value.values if isinstance(value, ast.Dict) else [value]
        for text in texts:
            if isinstance(text, ast.Constant) and isinstance(text.value, str) and _ID.fullmatch(text.value):
                yield text.value, bool(drafts)
