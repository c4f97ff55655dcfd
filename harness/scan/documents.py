"""Engine configurations in YAML: command strings, argument lists, serving and evaluation configurations."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from staticfire.harness.scan import forms
from staticfire.harness.scan.base import Limits, Location, Unknown, Unread
from staticfire.harness.scan.budget import REASON, Budget, Exhausted, TooLarge
from staticfire.harness.scan.positions import inside, last
from staticfire.harness.scan.results import Contribution, configurations
from staticfire.harness.scan.shell import MENTION as COMMAND
from staticfire.harness.scan.shell import read_shell
from staticfire.harness.scan.shelllex import words_of
from staticfire.harness.scan.shellstate import Variables
from staticfire.harness.scan.shellwords import expand
from staticfire.harness.scan.state import Construct, Record
from staticfire.harness.scan.values import Items, Keys, Rest, Text

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MODELS = ("model", "model_name", "model_id", "model_tag")
_LISTS = ("server_args", "base_args", "vllm_args", "engine_args", "serve_args")
_EVALUATION = frozenset({
    "max_model_len", "enforce_eager", "trust_remote_code", "kv_cache_dtype", "dtype", "quantization", "moe_backend",
    "tensor_parallel_size", "tp_size", "load_format", "add_bos_token", "block_size", "enable_prefix_caching",
    "enable_chunked_prefill", "max_num_batched_tokens", "max_num_seqs", "gpu_memory_utilization",
})  # fmt: skip
"""Keywords of the engine by which a mapping with a model is known to be a configuration."""
MENTION = re.compile(
    r"\bvllm\b|server_args|base_args|model_name|\bapi_server\b|max[-_]model[-_]len|tensor[-_]parallel[-_]size"
)
_DEPTH = 60
_NODES = 200_000
_USE = 32
"""How many times an element counts that is read as a word or a value."""


def read_yaml(text: str, path: str, budget: Budget | None = None) -> tuple[list[Contribution], list[Unread]]:
    """Sites of a YAML file, and what of it could not be read, as far as a budget goes."""
    budget = budget or Limits().budget(len(text))
    if not MENTION.search(text):
        return [], []
    try:
        documents = list(yaml.compose_all(text, LOADER))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        why = str(getattr(error, "problem", None) or error).splitlines()[0]
        return [], [Unread(path, mark.line + 1 if mark else 0, f"not YAML: {why}"[:200])]
    except (RecursionError, ValueError, MemoryError) as error:
        return [], [Unread(path, 0, f"cannot be parsed: {type(error).__name__}")]
    found: list[Contribution] = []
    notes: list[Unread] = []
    lines = text.split("\n")
    for document in documents:
        reader = _Reader(path, lines, budget)
        for node in _nodes(document, notes, path):
            try:
                budget.step()
                found.extend(reader.read(node))
            except (TooLarge, Exhausted):
                notes.append(Unread(path, node.start_mark.line + 1, REASON))
                break
        notes.extend(reader.notes)
    return found, notes


def _nodes(root: Node, notes: list[Unread], path: str) -> Iterator[Node]:
    """Every node once, however often it is referred to."""
    pending: list[tuple[Node, int]] = [(root, 0)]
    seen: set[int] = set()
    while pending:
        node, depth = pending.pop(0) if len(pending) < 1000 else pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if depth > _DEPTH or len(seen) > _NODES:
            notes.append(Unread(path, node.start_mark.line + 1, "too deep or too large"))
            return
        yield node
        if isinstance(node, MappingNode):
            pending.extend((value, depth + 1) for _, value in node.value)
        elif isinstance(node, SequenceNode):
            pending.extend((item, depth + 1) for item in node.value)


class _Reader:
    """Reads nodes of one document."""

    def __init__(self, path: str, lines: list[str], budget: Budget) -> None:
        self._budget = budget
        self._known: dict[int, Items] = {}
        self._path = path
        self._lines = lines
        self.notes: list[Unread] = []
        self._taken: set[int] = set()

    def read(self, node: Node) -> list[Contribution]:
        """Sites that stand at one node."""
        if id(node) in self._taken:
            return []
        if isinstance(node, ScalarNode):
            return self._scalar(node)
        if isinstance(node, SequenceNode):
            return self._sequence(node)
        return self._mapping(node) if isinstance(node, MappingNode) else []

    def _place(self, node: Node) -> Location:
        start, end = node.start_mark, last(node).end_mark
        return Location(self._path, start.line + 1, start.column + 1, end.line + 1, end.column + 1)

    def _scalar(self, node: ScalarNode) -> list[Contribution]:
        text = node.value
        if not isinstance(text, str) or not COMMAND.search(text):
            return []
        found, notes = read_shell(
            text, self._path, form="yaml", place=inside(node, self._lines, self._path), budget=self._budget
        )
        self.notes.extend(notes)
        return found

    def _sequence(self, node: SequenceNode) -> list[Contribution]:
        words = self._words(node)
        if words is None:
            return []
        start = forms.engine_command([str(word) for word in words[:14]])
        if start is None:
            return []
        self._taken.update(id(item) for item in node.value)
        return self._command(words, start, node, Keys())

    def _words(self, node: Node | None) -> Items | None:
        if not isinstance(node, SequenceNode) or not node.value:
            return None
        if id(node) not in self._known and not all(isinstance(item, ScalarNode) for item in node.value):
            return None
        try:
            # What is referred to in many places is read in each of them.
            self._budget.elements(_USE * len(node.value))
        except TooLarge:
            return Items([Rest(Unknown(REASON, "list"))])
        if id(node) not in self._known:
            self._known[id(node)] = Items(Text(str(item.value), self._place(item)) for item in node.value)
        return Items(self._known[id(node)])

    def _command(
        self, words: Items, start: int, node: Node, environment: Keys, model: Any = None
    ) -> list[Contribution]:
        keywords = Keys()
        if model is not None:
            keywords["model"] = model
            keywords.where["model"] = getattr(model, "where", self._place(node))
        where = self._place(node)
        record = Record(where, "yaml", "", "", [Construct(keywords, words, start, where, environment)])
        return [Contribution(where, "yaml", "", item) for item in configurations(record, "", ())]

    def _mapping(self, node: MappingNode) -> list[Contribution]:
        fields = {str(key.value): value for key, value in node.value if isinstance(key, ScalarNode)}
        found = self._container(node, fields)
        if found is None:
            found = self._with_arguments(node, fields)
        if found is None:
            found = self._keywords(node, fields)
        return found or []

    def _container(self, node: MappingNode, fields: Mapping[str, Node]) -> list[Contribution] | None:
        """`command` and `args` of a Kubernetes container, `command` or `entrypoint` of a compose service."""
        program, more = ("command", "args") if "args" in fields else ("entrypoint", "command")
        first, second = self._words(fields.get(program)), self._words(fields.get(more))
        image = fields.get("image")
        served = isinstance(image, ScalarNode) and "vllm" in str(image.value)
        if first is None and second is None:
            return None
        environment = self._environment(fields.get("env") or fields.get("environment"))
        for words in (Items([*(first or []), *(second or [])]), first, second):
            start = forms.engine_command([str(word) for word in words[:14]]) if words else None
            if words and start is not None:
                self._take(fields)
                return self._command(words, start, node, environment)
        # The image's own entry point is the server: the arguments are all there is.
        if served and second and any(str(word).startswith("--model") for word in second):
            self._take(fields)
            return self._command(second, 0, node, environment)
        return None

    def _take(self, fields: Mapping[str, Node]) -> None:
        for name in ("command", "args", "entrypoint"):
            value = fields.get(name)
            if value is not None:
                self._taken.add(id(value))
                if isinstance(value, SequenceNode):
                    self._taken.update(id(item) for item in value.value)

    def _with_arguments(self, node: MappingNode, fields: Mapping[str, Node]) -> list[Contribution] | None:
        """A model beside an argument string or list."""
        model = self._model(fields)
        if model is None:
            return None
        for name in _LISTS:
            value = fields.get(name)
            if value is None:
                continue
            words = self._words(value)
            if words is None and isinstance(value, ScalarNode):
                words = self._string_words(value)
            if words is None:
                words = Items() if isinstance(value, SequenceNode) else None
            if words is not None:
                self._taken.add(id(value))
                names = ("env", "environment", "base_env", "envs")
                environment = self._environment(next((fields[item] for item in names if item in fields), None))
                return self._command(words, 0, node, environment, model)
        return None

    def _string_words(self, node: ScalarNode) -> Items:
        place = self._place(node)
        words = Items()
        variables = Variables(self._budget)
        for word in words_of(str(node.value)):
            words.extend(expand(word, variables, place))
        return words

    def _model(self, fields: Mapping[str, Node]) -> Text | None:
        for name in _MODELS:
            value = fields.get(name)
            if isinstance(value, ScalarNode) and isinstance(value.value, str) and value.value:
                return Text(value.value, self._place(value))
        return None

    def _environment(self, node: Node | None) -> Keys:
        found = Keys()
        if isinstance(node, MappingNode):
            for key, value in node.value:
                if isinstance(key, ScalarNode) and isinstance(value, ScalarNode):
                    found[str(key.value)] = str(value.value)
                    found.where[str(key.value)] = self._place(key)
        elif isinstance(node, SequenceNode):
            for item in node.value:
                self._variable(item, found)
        return found

    def _variable(self, item: Node, found: Keys) -> None:
        if isinstance(item, ScalarNode) and "=" in str(item.value):
            name, _, value = str(item.value).partition("=")
            found[name] = value
            found.where[name] = self._place(item)
        elif isinstance(item, MappingNode):
            fields = {str(key.value): value for key, value in item.value if isinstance(key, ScalarNode)}
            name_node, value_node = fields.get("name"), fields.get("value")
            if isinstance(name_node, ScalarNode) and isinstance(value_node, ScalarNode):
                found[str(name_node.value)] = str(value_node.value)
                found.where[str(name_node.value)] = self._place(item)

    def _keywords(self, node: MappingNode, fields: Mapping[str, Node]) -> list[Contribution] | None:
        """A mapping of engine keywords beside a model: a serving or an evaluation configuration."""
        model = self._model(fields)
        normal = {name.replace("-", "_"): name for name in fields}
        evaluated = "tasks" in fields and "model_name" in fields
        engine = [name for name in normal if name in _EVALUATION]
        if (
            model is None
            or not (engine or evaluated)
            or (not evaluated and "model" not in fields and "model_tag" not in fields)
        ):
            return None
        keywords = Keys({"model": model})
        keywords.where["model"] = model.where
        wanted = engine if evaluated else [name for name in normal if name not in _MODELS]
        for name in wanted:
            value = fields[normal[name]]
            target = {"tp_size": "tensor_parallel_size"}.get(name, name)
            try:
                keywords[target] = plain_node(value, budget=self._budget)
            except TooLarge:
                keywords[target] = Unknown(REASON, name)
            keywords.where[target] = self._place(value)
        if not evaluated:
            for name in list(keywords):
                if name == "config":
                    keywords.pop(name)
        where = self._place(node)
        record = Record(where, "yaml", "", "", [Construct(keywords, where=where)])
        return [Contribution(where, "yaml", "", item) for item in configurations(record, "", ())]


def plain_node(node: Node, depth: int = 0, budget: Budget | None = None) -> Any:
    """A node as a plain value: numbers, truth values and nothing by their tags, anything else as its text.

    Raises:
        TooLarge: The budget does not go as far.
    """
    budget = budget or Limits().budget()
    if depth > 12:
        return Unknown(REASON, "nested")
    budget.elements(_USE * (1 + len(node.value) if isinstance(node, SequenceNode | MappingNode) else 1))
    if isinstance(node, ScalarNode):
        return _scalar(node)
    if isinstance(node, SequenceNode):
        return Items(plain_node(item, depth + 1, budget) for item in node.value)
    if isinstance(node, MappingNode):
        return Keys(
            {
                str(key.value): plain_node(value, depth + 1, budget)
                for key, value in node.value
                if isinstance(key, ScalarNode)
            }
        )
    return None


def _scalar(node: ScalarNode) -> Any:
    tag = node.tag.rpartition(":")[2]
    text = str(node.value)
    try:
        if tag == "int":
            return int(text.replace("_", ""), 0)
        if tag == "float":
            return float(text.replace("_", ""))
    except ValueError:
        return text
    if tag == "bool":
        return text.lower() in {"true", "yes", "on"}
    return None if tag == "null" else text
