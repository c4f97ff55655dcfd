"""Engine commands in shell scripts: loops and calls followed, branches joined, nothing run."""

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from staticfire.harness.scan import forms, shellarithmetic
from staticfire.harness.scan.base import Form, Limits, Location, Unknown, Unread
from staticfire.harness.scan.budget import REASON, Budget, Exhausted, TooLarge
from staticfire.harness.scan.results import Contribution, configurations
from staticfire.harness.scan.shelllex import Word
from staticfire.harness.scan.shellnames import Assigned, assigned, substituted
from staticfire.harness.scan.shellstate import (
    ABSENT,
    EXPORT_ALL,
    EXPORTED,
    FUNCTION,
    LASTPIPE,
    LIST,
    MARKED,
    ODD,
    SPLIT,
    UNSURE,
    VALUE,
    Key,
    Variables,
)
from staticfire.harness.scan.shelltree import Item, Node, TooDeep, parse
from staticfire.harness.scan.shellwords import ASSIGNMENT, assign, braces, expand, spelled_out
from staticfire.harness.scan.state import Construct, Record
from staticfire.harness.scan.values import Items, Joined, Keys, Rest

MENTION = re.compile(r"\bvllm\s+(?:serve|bench|launch)\b|\bapi_server\b")
_FENCE = re.compile(r"^[ \t]{0,40}```", re.MULTILINE)
_GLOB = re.compile(r"[*?\[]")
_BRACED = re.compile(r"\$\{[^}]*\}")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_PREFIXES = frozenset({"command", "builtin", "exec", "nohup", "time"})
"""Commands that run the rest of their words; all but `time` know no functions."""
_COMPARED = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
"""In `[[`, both sides of these are expressions, which may assign."""
_SUBSCRIPTED = frozenset({"read", "mapfile", "readarray", "printf", "unset", "test", "[", "[[", "wait", "getopts"})
"""Commands that take the name of a variable with an index, which is an expression."""
_FEEDS = frozenset({"xargs", "parallel", "find", "fd"})
"""Commands that put words into the command that they run."""
_DECLARES = frozenset({"export", "readonly", "local", "declare", "typeset"})
_LEAVES = frozenset({"exit", "return", "break", "continue"})
_BREAKS = re.compile(r"\b(?:break|continue)\b")
_RETURNS = re.compile(r"\breturn\b")
_QUIET = frozenset({":", "true", "echo", "set", "export"})
"""Commands that succeed."""
_LATE = frozenset({"EXIT", "INT", "TERM", "HUP", "QUIT", "0", "1", "2", "3", "15", "SIGINT", "SIGTERM", "SIGHUP"})
"""What a trap waits for that comes when the script is over."""
_TURNS = 256
"""Values of one loop that are each followed."""
_CALLS = 8
"""Calls of functions within calls."""
_COST = 5
"""Steps of a command beside those of its words."""

Place = Callable[[int, int], Location]
"""Offsets of the first character and after the last one -> location."""


def read_shell(
    text: str, path: str, *, form: Form = "shell", place: Place | None = None, budget: Budget | None = None
) -> tuple[list[Contribution], list[Unread]]:
    """Sites of a shell text, and what of it was not followed.

    Args:
        text: The script.
        path: Its file, as locations name it.
        form: Of its sites.
        place: Where parts of the text stand in the file, if it is not the whole of it.
        budget: What may be spent on it.
    """
    if not MENTION.search(text):
        return [], []
    place = place or in_file(text, path)
    text = _fenced(text)
    budget = budget or Limits().budget(len(text))
    try:
        items = parse(text)
    except TooDeep:
        return [], [Unread(path, place(0, 0).line, "nested too deeply to be followed")]
    except MemoryError:
        return [], [Unread(path, place(0, 0).line, REASON)]
    script = _Script(text, place, form, Variables(budget))
    notes = []
    try:
        script.run(items)
        script.run_uncalled()
    except Exhausted:
        notes.append(Unread(path, place(0, 0).line, "evaluation was cut off"))
    except (TooLarge, MemoryError, RecursionError):
        notes.append(Unread(path, place(0, 0).line, REASON))
    return _settled(script.found), notes


def _fenced(text: str) -> str:
    """Of a text that shows code between fences, the code, everything at its offset; any other text as it is."""
    if not _FENCE.search(text):
        return text
    inside, pieces = False, []
    for line in text.splitlines(keepends=True):
        fence = _FENCE.match(line) is not None
        pieces.append(line if inside and not fence else " " * (len(line) - 1) + line[-1:].replace("`", " "))
        inside = inside != fence
    return "".join(pieces)


def in_file(text: str, path: str) -> Place:
    """Places in a file's own text."""
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]

    def place(first: int, after: int) -> Location:
        line, end = bisect_right(starts, first), bisect_right(starts, after)
        return Location(path, line, first - starts[line - 1] + 1, end, after - starts[end - 1] + 1)

    return place


@dataclass(slots=True)
class _Script:
    """Runs through a script's commands, as far as variables, blocks and functions go.

    Attributes:
        locals: For each call that is followed, what its local variables were before.
        uncalled: Bodies of functions that nothing was seen to call.
    """

    text: str
    place: Place
    form: Form
    variables: Variables
    found: list[Contribution] = field(default_factory=list)
    turns: list[tuple[str, str]] = field(default_factory=list)
    locals: list[dict[Key, Any]] = field(default_factory=list)
    uncalled: dict[int, list[Item]] = field(default_factory=dict)
    _open_loops: int = 0
    _assigned: dict[str, tuple[Assigned, frozenset[str]]] = field(default_factory=dict)

    def run(self, items: list[Item]) -> None:
        """Follow some commands in order."""
        sure = True
        for item in items:
            if not item.joint:
                sure = True
            conditional = item.joint == "||" or (item.joint == "&&" and not sure)
            mark = self.variables.mark()
            self._node(item.node)
            if item.apart:
                self._take_back(item.node, mark)
            elif conditional:
                self.variables.merge([{}, self.variables.back(mark)])
            sure = sure and item.joint != "||" and self._succeeds(item.node)

    def _take_back(self, node: Node, mark: int) -> None:
        """What a process of its own assigns ends with it."""
        last = self.variables.has(LASTPIPE)
        self.variables.back(mark)
        if last:
            self.variables.forget(self._may_assign(node))

    def _succeeds(self, node: Node) -> bool:
        if node.kind != "command" or not node.words or node.targets:
            return False
        plain = not any(sign in word for word in node.words for sign in ("$(", "`", "${"))
        return plain and (node.words[0] in _QUIET or all(ASSIGNMENT.fullmatch(word) for word in node.words))

    def _node(self, node: Node) -> None:  # noqa: C901 - one kind of command, one case
        self.variables.budget.step(_COST + len(node.words or ()))
        match node.kind:
            case "command":
                self._command(node)
            case "group":
                self.run(node.blocks[0][1])
            case "subshell":
                mark = self.variables.mark()
                for _, body in node.blocks:
                    self.run(body)
                self.variables.back(mark)
                if node.name:
                    self.variables.forget([node.name, f"{node.name}_PID"])
            case "branches":
                self._branches(node)
            case "loop":
                self._open_loop(node)
            case "each":
                self._each(node)
            case "arithmetic":
                shellarithmetic.run(node.text, self.variables)
            case "function":
                body = [item for _, block in node.blocks for item in block]
                self.variables.put(FUNCTION, node.name, body)
                self.uncalled[id(node)] = body
        for target in node.targets:
            self._expand(target, None)
        if node.descriptors:
            self.variables.forget(node.descriptors)

    # Blocks

    def _branches(self, node: Node) -> None:
        """Follow each branch from the same start; afterwards any of them may have been gone."""
        ways: list[dict[Key, Any]] = []
        if node.falls:
            self.variables.forget(self._may_assign(node))
        start = self.variables.mark()
        for condition, body in node.blocks:
            self.run(condition)  # those before it have been run, and were not true
            mark = self.variables.mark()
            self.run(body)
            after = self.variables.back(mark)
            if not self._leaves(body):
                ways.append({**self._since(start), **after})
        if not node.closed:
            ways.append(self._since(start))
        self.variables.back(start)
        if ways:
            self.variables.merge(ways)

    def _since(self, mark: int) -> dict[Key, Any]:
        """What has changed since a mark, which stays changed."""
        changed = self.variables.back(mark)
        for key, value in changed.items():
            self.variables.put(*key, value)
        return changed

    @staticmethod
    def _leaves(body: list[Item]) -> bool:
        """Whether nothing that follows a block is run after it."""
        last = body[-1] if body else None
        words = last.node.words if last is not None and not last.joint and not last.apart else None
        return words is not None and len(words) > 0 and str(words[0]) in _LEAVES

    def _open_loop(self, node: Node) -> None:
        """Read a loop whose rounds are not known: what one of them assigns may hold in the next one."""
        if node.text or self._open_loops > 1 or _BREAKS.search(self.text, node.start, node.end):
            self._loses(node)
            if node.text:
                shellarithmetic.run(node.text, self.variables)
                self._loses(node)
            self._round(node)
            self._loses(node)
            return
        count = len(self.found)
        self.variables.merge([{}, self._round(node)])
        del self.found[count:]  # read again with what a round before may have left
        if all(self._covers(key, value) for key, value in self._round(node).items()):
            return
        del self.found[count:]
        self._loses(node)
        self._round(node)
        self._loses(node)

    def _round(self, node: Node) -> dict[Key, Any]:
        """Read a loop's commands once, and take back what they assign."""
        mark = self.variables.mark()
        self._open_loops += 1
        for condition, body in node.blocks:
            self.run(condition)
            inner = self.variables.mark()
            self.run(body)
            self.variables.merge([{}, self.variables.back(inner)])
        self._open_loops -= 1
        return self.variables.back(mark)

    def _covers(self, key: Key, value: Any) -> bool:
        """Whether what is held allows for a value already."""
        held = self.variables.held.get(key, ABSENT)
        if isinstance(held, Unknown):
            new = value.candidates if isinstance(value, Unknown) else (value,)
            return not held.candidates or (bool(new) and set(map(str, new)) <= set(held.candidates))
        return held is value or (type(held) is type(value) and bool(held == value))

    def _loses(self, node: Node) -> None:
        self.variables.forget(self._may_assign(node))

    def _each(self, node: Node) -> None:
        values, beyond = self._values(node)
        body = [item for _, block in node.blocks for item in block]
        loses = beyond is not None or _BREAKS.search(self.text, node.start, node.end) is not None
        mark = self.variables.mark()
        for value in values:
            if loses:
                self._loses(node)
            self.variables.set(node.name, value)
            self.turns.append((node.name, value))
            self.run(body)
            self.turns.pop()
        if beyond is not None:
            self._loses(node)
            self.variables.set(node.name, beyond)
            self.run(body)
            self.variables.merge([{}, self.variables.back(mark)])
        if loses:
            self._loses(node)

    def _values(self, node: Node) -> tuple[list[str], Unknown | None]:
        """What a loop's variable becomes in turn, and why there may be more."""
        if node.words is None:
            return [], Unknown("loop", node.name)
        values: list[str] = []
        beyond: Unknown | None = None
        for word in node.words:
            for one in self._spelled(word):
                globs = _GLOB.search(_BRACED.sub("", one)) is not None and not {"'", '"'} & set(one)
                for item in self._expand(one, None):
                    known = isinstance(item, str) and not globs and spelled_out(one)
                    if known and len(values) < _TURNS:
                        values.append(str(item))
                    else:
                        why = _why(item)
                        beyond = beyond or Unknown("loop", f"{node.name}: {why}" if why else node.name)
        return values, beyond

    def _spelled(self, word: Word) -> list[str]:
        try:
            return braces(word, self.variables)
        except TooLarge:
            return ["$_"]  # never known

    # What may be assigned

    def _may_assign(self, node: Node) -> Assigned:
        """What a command may assign, by itself and in the functions that it may call."""
        return self._may_assign_text(self.text[node.start : node.end])

    def _may_assign_text(self, text: str) -> Assigned:
        names: set[str] = set()
        anything = False
        seen: set[str] = set()
        pending = [text]
        while pending:
            part = pending.pop()
            found, words = self._in_text(part)
            names |= found.names
            anything = anything or found.anything
            for word in words - seen:
                seen.add(word)
                pending.extend(
                    self.text[item.node.start : item.node.end] for item in self.variables.function(word) or ()
                )
        return Assigned(frozenset(names), anything)

    def _in_text(self, text: str) -> tuple[Assigned, frozenset[str]]:
        """What a text assigns, and the words in it that could be functions."""
        known = self._assigned.get(text)
        if known is None:
            # Texts are parts of the script: at each depth of nesting there are no more than it has characters.
            known = self._assigned[text] = (assigned(text), frozenset(_IDENTIFIER.findall(text)))
        found, words = known
        self.variables.budget.step(1)
        return found, frozenset(word for word in words if self.variables.function(word) is not None)

    # Commands

    def _expand(self, word: str, where: Location | None) -> list[Any]:
        try:
            return expand(word, self.variables, where)
        except TooLarge:
            self.variables.forget(substituted(word))
            return [Rest(Unknown(REASON, word[:40]))]

    def _words(self, word: Word, where: Location) -> list[Any]:
        """What a word of a command becomes, its braces spelled out."""
        if "{" not in word:
            return self._expand(word, where)
        spelled = self._spelled(word)
        if not spelled_out(spelled[0]):
            return [Rest(Unknown("shell", word[:40]))]
        return [item for one in spelled for item in self._expand(one, where)]

    def _assign(self, word: str) -> tuple[str, Any]:
        matched = ASSIGNMENT.fullmatch(word)
        assert matched is not None
        if matched[1] == "IFS":
            self.variables.put(SPLIT, "", True)
        try:
            return matched[1], assign(matched, self.variables)
        except TooLarge:
            self.variables.forget(substituted(word))
            self.variables.set(matched[1], Unknown(REASON, matched[1]))
            return matched[1], Unknown(REASON, matched[1])

    def _command(self, node: Node) -> None:
        words = node.words or []
        if not words:
            return
        where = self.place(words[0].start, words[-1].end)
        mark = self.variables.mark()
        environment = Keys()
        index = 0
        while index < len(words) and ASSIGNMENT.fullmatch(words[index]):
            name, value = self._assign(words[index])
            environment[name] = value
            environment.where[name] = where
            index += 1
        if index == len(words):
            return
        if index:
            # What stands before a command holds for that command alone; what its expansions assign is not known.
            given = self.variables.back(mark)
            for word in words[:index]:
                self.variables.forget(substituted(word))
            if words[index] in _DECLARES or ("$" in words[index] and not self._is_there(words[index])):
                self.variables.forget(name for _, name in given)
            elif self.variables.function(words[index]) is not None:
                self._lent(given, words[index:], where, environment)
                return
        self._run(words[index:], where, environment)

    def _is_there(self, word: str) -> bool:
        """Whether a word is at least one word: without a command, what stood before it would be assigned."""
        items = self._expand(word, None)
        return bool(items) and not isinstance(items[0], Rest)

    def _lent(self, given: dict[Key, Any], words: list[Word], where: Location, environment: Keys) -> None:
        """Follow a call of a function with what stands before it."""
        given = given | {(EXPORTED, name): value for (kind, name), value in given.items() if kind == VALUE}
        before = {key: self.variables.held.get(key, ABSENT) for key in given}
        for key, value in given.items():
            self.variables.put(*key, value)
        self._run(words, where, environment)
        for key, value in before.items():
            self.variables.put(*key, value)

    def _with_exported(self, own: Keys, where: Location) -> Keys:
        """The environment of a command: what is exported, and over it what stands before the command."""
        self.variables.budget.step(len(self.variables.held))
        found = Keys()
        for (kind, name), value in self.variables.held.items():
            if kind == EXPORTED:
                found[name] = value
                found.where[name] = self.variables.held.get(("where", name), where)
        found.update(own)
        found.where.update(own.where)
        return found

    def _run(self, words: list[Word], where: Location, environment: Keys) -> None:
        index = 0
        while index < len(words) and words[index] in _PREFIXES:
            index += 1
        rest = words[index:]
        if not rest:
            return
        head = self._expand(rest[0], where)
        name = head[0] if head and isinstance(head[0], str) else ""
        if name in _DECLARES:
            self._declare(name, rest[1:], where)
            return
        expanded = [*head, *(item for word in rest[1:] for item in self._words(word, where))]
        found = any(word != "time" for word in words[:index])  # as a program, not as a function
        if not found and (body := self.variables.function(str(name))) is not None:
            self._call(str(name), body, expanded[1:])
            return
        self._builtin(str(name), expanded[1:])
        self._engine(expanded, where, environment)

    def _declare(self, command: str, words: list[Word], where: Location) -> None:
        """`export`, `readonly`, `local`, `declare`, `typeset`."""
        options = "".join(word[1:] for word in words if word[:1] in {"-", "+"})
        away = any(word[:1] == "+" and "x" in word for word in words) or (command == "export" and "n" in options)
        if "n" in options and command != "export":
            self.variables.put(UNSURE, "", True)
            return
        words = [word for word in words if word[:1] not in {"-", "+"}]
        # All of the values are made before any of the names is assigned.
        made: list[dict[Key, Any]] = []
        for word in words:
            mark = self.variables.mark()
            if ASSIGNMENT.fullmatch(word):
                self._assign(word)
            made.append(self.variables.back(mark))
        for word, changes in zip(words, made, strict=True):
            name = re.split(r"[=+\[]", word, maxsplit=1)[0]
            if not _IDENTIFIER.fullmatch(name):
                self.variables.put(UNSURE, "", True)  # names that are made up as the script runs
                return
            if self.locals and command in {"local", "declare", "typeset"} and "g" not in options:
                self._make_local(name)
            for key, value in changes.items():
                self.variables.put(*key, value)
            if set(options) & set("iulAcI"):
                self.variables.put(ODD, name, True)
                self.variables.forget([name])
                self._evaluated([word])
            if command == "readonly" or "r" in options:
                self.variables.put(ODD, name, True)  # whoever assigns it again fails, or ends the script
            if command == "export" or "x" in options:
                self._export(name, where, assigned_here=bool(changes), away=away)

    def _export(self, name: str, where: Location, *, assigned_here: bool, away: bool) -> None:
        value = self.variables.value(name)
        if away:
            self.variables.put(EXPORTED, name, ABSENT)
            self.variables.put(MARKED, name, ABSENT)
        elif assigned_here or value is not None:
            self.variables.put("where", name, where)
            self.variables.put(EXPORTED, name, value)
        else:
            self.variables.put(MARKED, name, True)

    def _evaluated(self, words: list[str]) -> None:
        """What words assign that the shell takes for expressions."""
        for word in words:
            self.variables.forget(assigned(word))
            self.variables.forget(shellarithmetic.indirect(word, self.variables))

    def _make_local(self, name: str) -> None:
        saved = self.locals[-1]
        for kind in (VALUE, LIST, ODD, EXPORTED):
            saved.setdefault((kind, name), self.variables.held.get((kind, name), ABSENT))
        self.variables.put(LIST, name, ABSENT)
        self.variables.put(VALUE, name, Unknown("shell", name))

    def _call(self, name: str, body: list[Item], arguments: list[Any]) -> None:
        """Follow a function."""
        for key in [key for key, value in self.uncalled.items() if value is body]:
            del self.uncalled[key]
        text = [self.text[item.node.start : item.node.end] for item in body]
        if len(self.locals) >= _CALLS:
            for item in body:
                self._loses(item.node)
            return
        given = self.variables.held.get((LIST, "@"), ABSENT)
        self.variables.put(LIST, "@", arguments)
        self.locals.append({})
        try:
            self.run(body)
        finally:
            saved = self.locals.pop()
        if any(_RETURNS.search(part) for part in text):
            for item in body:
                self._loses(item.node)
        if self.variables.has(ODD, f"{name}()"):
            self.variables.lose()  # it may have been defined anew
        for (kind, variable), value in saved.items():
            self.variables.put(kind, variable, value)
        self.variables.put(LIST, "@", given)

    def run_uncalled(self) -> None:
        """Read functions that nothing was seen to call: whoever calls them may have assigned anything before."""
        self.variables.put(UNSURE, "", True)
        for body in list(self.uncalled.values()):
            self.locals.append({})
            self.run(body)
            self.locals.pop()

    def _builtin(self, name: str, arguments: list[Any]) -> None:  # noqa: C901, PLR0912 - one command, one case
        """What the commands of the shell itself assign."""
        texts = [str(one) for one in arguments if isinstance(one, str)]
        names = [text.partition("[")[0] for text in texts if _IDENTIFIER.fullmatch(text.partition("[")[0])]
        open_ = len(texts) < len(arguments)
        if name == "[[" and not _COMPARED.isdisjoint(texts):
            self._evaluated(texts)
        elif name in _SUBSCRIPTED:
            self._evaluated([text[text.index("[") :] for text in texts if "[" in text[1:]])
        match name:
            case "read" | "mapfile" | "readarray" | "getopts" | "wait" | "printf":
                if name in {"wait", "printf"} and not any(text.startswith(("-v", "-p")) for text in texts):
                    if open_ and not isinstance(arguments[0], str):
                        self.variables.put(UNSURE, "", True)
                    return
                if open_:
                    self.variables.put(UNSURE, "", True)
                self.variables.forget([*names, *(text[2:] for text in texts if _IDENTIFIER.fullmatch(text[2:]))])
            case "unset":
                self._unset(texts, names, open_=open_)
            case "let":
                for text in texts:
                    shellarithmetic.run(text, self.variables)
                if open_:
                    self.variables.put(UNSURE, "", True)
            case "source" | "." if texts and not open_ and texts[0].endswith("bin/activate"):
                # What makes a virtual environment the current one; its text is Python's own, and assigns only these.
                self.variables.forget(["VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT", "PS1", "PYTHONHOME"])
            case "eval" | "source" | "." | "alias" | "enable":
                self.variables.lose()
            case "shopt" if "lastpipe" in texts and not open_:
                self.variables.put(LASTPIPE, "", True)
            case "shopt":
                if any(text in {"expand_aliases", "localvar_inherit", "localvar_unset"} for text in texts) or open_:
                    self.variables.put(UNSURE, "", True)
            case "trap":
                if open_ or (len(texts) > 1 and texts[0] not in {"-", "", "--"} and not set(texts[1:]) <= _LATE):
                    self._interrupted(texts[0] if texts else "", open_=open_)
            case "shift":
                self.variables.put(LIST, "@", ABSENT)
            case "set" if any("k" in text[1:] for text in texts if text[:1] == "-") or "keyword" in texts:
                self.variables.put(UNSURE, "", True)
            case "set" if any("a" in text[1:] for text in texts if text[:1] in {"-", "+"}) or "allexport" in texts:
                on = any(text.startswith("-") for text in texts)
                self.variables.put(EXPORT_ALL, "", True if on else ABSENT)
            case "set" if any(not text.startswith(("-", "+")) or text == "--" for text in texts) or open_:
                self.variables.put(LIST, "@", ABSENT)

    def _interrupted(self, action: str, *, open_: bool) -> None:
        """From now on a trap may run between any two commands."""
        what = self._may_assign_text(action)
        if open_ or what.anything:
            self.variables.put(UNSURE, "", True)
        for name in what.names:
            self.variables.put(ODD, name, True)
        self.variables.forget(what)

    def _unset(self, texts: list[str], names: list[str], *, open_: bool) -> None:
        if open_:
            self.variables.put(UNSURE, "", True)
        for name in names:
            if "-f" not in texts:
                self.variables.forget([name])
                if not self.locals and "-n" not in texts and name in texts and not self.variables.has(ODD, name):
                    self.variables.put(LIST, name, ABSENT)
                    self.variables.put(VALUE, name, ABSENT)
                    self.variables.put(EXPORTED, name, ABSENT)
            if "-v" not in texts and self.variables.function(name) is not None:
                self.variables.put(FUNCTION, name, ABSENT)

    def _engine(self, expanded: list[Any], where: Location, environment: Keys) -> None:
        start = _start([item if isinstance(item, str) else "" for item in expanded[:40]])
        if start is None:
            return
        environment = self._with_exported(environment, where)
        expanded = _fed(expanded, start)
        self._given(expanded[:start], where, environment)
        construct = Construct(Keys(), Items(expanded), start, where)
        record = Record(where, self.form, "", "", [construct], environment=environment)
        params = ",".join(f"{name}={value}" for name, value in self.turns)
        self.found.extend(Contribution(where, self.form, "", item) for item in configurations(record, params, ()))

    def _given(self, before: list[Any], where: Location, environment: Keys) -> None:
        """What the words before the engine's own make of its environment."""
        for index, word in enumerate(before):
            pieces = word.pieces if isinstance(word, Joined) else (word,)
            if isinstance(pieces[0], str) and (matched := ASSIGNMENT.fullmatch(pieces[0])) is not None:
                rest = tuple(piece for piece in (matched[4], *pieces[1:]) if piece != "")
                environment[matched[1]] = Joined(rest) if len(pieces) > 1 else matched[4]
                environment.where[matched[1]] = where
            elif "env" not in [str(one).rpartition("/")[2] for one in before[:index]] or not isinstance(word, str):
                continue
            elif word in {"-i", "-", "--ignore-environment"}:
                environment.clear()
            elif word in {"-u", "--unset"} and index + 1 < len(before):
                environment.pop(str(before[index + 1]), None)
            elif word.startswith(("-u", "--unset=")):
                environment.pop(word.removeprefix("-u").removeprefix("--unset="), None)


def _fed(words: list[Any], start: int) -> list[Any]:
    """The words of a command that another one runs with more words, or with others in place of marks."""
    before = [str(word) for word in words[:start]]
    tool = next((index for index, word in enumerate(before) if word.rpartition("/")[2] in _FEEDS), None)
    if tool is None:
        return words
    marks = ["{"]
    for index, word in enumerate(before[tool:], tool):
        if word in {"-I", "--replace"} and index + 1 < len(before):
            marks.append(before[index + 1])
        elif word.startswith(("-I", "--replace=")):
            marks.append(word.removeprefix("-I").removeprefix("--replace="))
    open_ = Unknown("shell", before[tool].rpartition("/")[2])
    fed = [open_ if isinstance(word, str) and any(mark in word for mark in marks) else word for word in words[start:]]
    return [*words[:start], *fed, Rest(open_)]


def _why(item: Any) -> str:
    if isinstance(item, Rest):
        return item.why.detail
    if isinstance(item, Joined):
        return next((piece.detail for piece in item.pieces if isinstance(piece, Unknown)), "")
    return item.detail if isinstance(item, Unknown) else str(item)


def _settled(found: list[Contribution]) -> list[Contribution]:
    """Turns of a loop that make no difference to a command are one."""
    by_place: dict[Location, dict[str, Contribution]] = {}
    for item in found:
        plain = replace(item.configuration, params="")
        by_place.setdefault(item.where, {}).setdefault(repr(plain), item)
    kept: list[Contribution] = []
    for items in by_place.values():
        kept.extend(items.values())
        if len(items) == 1:
            kept[-1] = replace(kept[-1], configuration=replace(kept[-1].configuration, params=""))
    return kept


def _start(words: list[str]) -> int | None:
    for index in range(len(words)):
        if words[index].rpartition("/")[2] == "vllm" or words[index] == "-m":
            start = forms.engine_command(words[index : index + 4])
            if start is not None:
                return index + start
    return None
