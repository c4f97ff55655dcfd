"""Evaluate calls: known functions, functions and classes that are read, and the constructions that are sites."""

import ast
from collections.abc import Mapping
from typing import Any

from staticfire.harness.scan import forms, platforms, pure
from staticfire.harness.scan.base import Form, Location, Negative, Unknown
from staticfire.harness.scan.names import OPEN, Names, decorated
from staticfire.harness.scan.slices import slice_block, terminal
from staticfire.harness.scan.state import Construct, Frame, Param, Patch, Raises, Record, Stopped
from staticfire.harness.scan.values import (
    Bound,
    Class,
    External,
    Function,
    Instance,
    Items,
    Joined,
    Keys,
    Made,
    Member,
    Method,
    Rest,
    deeply_known,
    is_known,
)

_PATCHING = frozenset({"patch", "patch.object", "mocker.patch"})


class Calls(Names):
    """Evaluation of calls."""

    def call(self, node: ast.Call, frame: Frame) -> Any:  # noqa: PLR0911
        """The value of a call."""
        name = terminal(node.func)
        if name in forms.NAMES and not _is_method(node.func):
            return self.site(node, forms.NAMES[name], frame)
        special = self._special(name, node, frame)
        if special is not NotImplemented:
            return special
        target = self.evaluate(node.func, frame)
        if isinstance(target, Class) and name in self.reach(frame.module) and self.run.record is None:
            signature = forms.Signature("wrapper")
            return self.site(node, signature, frame, target)
        args, keywords = self.arguments(node, frame)
        return self.apply(target, args, keywords, node, frame)

    def arguments(self, node: ast.Call, frame: Frame) -> tuple[list[Any], Keys]:
        """Positional and keyword arguments of a call, splats merged in, with places."""
        args: list[Any] = []
        for arg in node.args:
            if isinstance(arg, ast.Starred):
                pure.extend(args, self.evaluate(arg.value, frame))
            else:
                args.append(self.evaluate(arg, frame))
        keywords = Keys()
        for keyword in node.keywords:
            value = self.evaluate(keyword.value, frame)
            if keyword.arg is None:
                pure.merge(keywords, value)
                continue
            keywords[keyword.arg] = value
            place = frame.given.get(keyword.value.id) if isinstance(keyword.value, ast.Name) else None
            keywords.where[keyword.arg] = place or frame.module.place(keyword)
        return args, keywords

    def apply(self, target: Any, args: list[Any], keywords: Keys, node: ast.Call, frame: Frame) -> Any:  # noqa: C901, PLR0911, PLR0912
        """Call a value."""
        match target:
            case Function():
                return self.call_function(target, args, keywords)
            case Class():
                return self.instantiate(target, args, keywords)
            case Bound():
                merged = Keys(target.keywords)
                pure.merge(merged, keywords)
                return self.apply(target.function, [*target.args, *args], merged, node, frame)
            case Method():
                return self._method(target, args, keywords, frame, node)
            case External():
                return self._external(target, args, keywords, node, frame)
            case Instance():
                inner = self.class_attribute(target.cls, "__call__")
                if isinstance(inner, Function):
                    return self.call_function(self.bind(inner, target), args, keywords)
                return Unknown("call", frame.module.excerpt(node))
            case Unknown() if target.reason in {"environment", "platform"}:
                return Unknown(target.reason, frame.module.excerpt(node))
            case _:
                return Unknown("call", frame.module.excerpt(node))

    def _method(self, method: Method, args: list[Any], keywords: Keys, frame: Frame, node: ast.Call) -> Any:
        receiver = method.receiver
        if isinstance(receiver, Keys) and method.name in {"setdefault", "update"}:
            for key in [args[0]] if method.name == "setdefault" and args and pure.hashable(args[0]) else []:
                if key not in receiver:
                    receiver.where[key] = frame.module.place(node)
        value = pure.method(receiver, method.name, args, keywords, self.config.limits)
        if isinstance(value, Unknown) and value.reason == "call":
            return Unknown("call", frame.module.excerpt(node))
        return value

    def _external(self, target: External, args: list[Any], keywords: Keys, node: ast.Call, frame: Frame) -> Any:  # noqa: C901, PLR0911, PLR0912
        name = target.name.removeprefix("builtins.")
        found = platforms.call(target, args, self.config)
        if found is not NotImplemented:
            return found
        if name in {"os.environ.get", "os.getenv"}:
            default = args[1] if len(args) > 1 else keywords.get("default")
            return self.environment_value(args[0] if args else None, default)
        if name == "functools.partial" and args:
            return Bound(args[0], tuple(args[1:]), keywords)
        if name == "isinstance" and len(args) == 2:
            return self._isinstance(args[0], args[1], frame.module.excerpt(node))
        if name in {"getattr", "hasattr"} and len(args) >= 2 and isinstance(args[1], str):
            return self._getattr(name, args, node, frame)
        if name in {"dataclasses.replace", "dataclasses.asdict", "copy.replace"} and args and isinstance(args[0], Instance):
            attributes = Keys({key: pure.duplicate(value) for key, value in args[0].attributes.items()})
            if name.endswith("asdict"):
                return attributes
            return Instance(args[0].cls, dict(attributes) | keywords)
        if name in {"map", "filter"} and len(args) >= 2:
            return self._map(name, args, node, frame)
        if name == "super":
            return Unknown("call", "super()")
        if name == "type" and args and isinstance(args[0], Instance):
            return args[0].cls
        if (process := keywords.get("target")) is not None and isinstance(process, Function | Bound):
            self._later(process, keywords, node, frame)
        if name in {"pathlib.Path", "Path"}:
            return args[0] if len(args) == 1 and isinstance(args[0], str) else Unknown("path", frame.module.excerpt(node))
        if configuration_class(target):
            if target.last not in forms.NAMES and args and target.last in {"ModelConfig"}:
                keywords.setdefault("model", args[0])
            return Made(target.last, keywords)
        value = pure.apply(name, args, keywords, self.config.limits)
        if value is NotImplemented or (isinstance(value, Unknown) and value.reason in {"value", "call", "error"}):
            return Unknown("call", frame.module.excerpt(node))
        return value

    def _later(self, process: Any, keywords: Keys, node: ast.Call, frame: Frame) -> None:
        args = keywords.get("args", ())
        inner = keywords.get("kwargs")
        if isinstance(args, tuple | list):
            self.apply(process, list(args), Keys(inner) if isinstance(inner, dict) else Keys(), node, frame)

    def _map(self, name: str, args: list[Any], node: ast.Call, frame: Frame) -> Any:
        elements = pure.sequence(args[1])
        if elements is None or len(args) > 2 or len(elements) > self.config.limits.iterations or name == "filter":
            return Unknown("call", frame.module.excerpt(node))
        return Items(self.apply(args[0], [element], Keys(), node, frame) for element in elements)

    def _getattr(self, name: str, args: list[Any], node: ast.Call, frame: Frame) -> Any:
        value = self.attribute(args[0], args[1], node, frame)
        missing = isinstance(value, Unknown) or (isinstance(value, Method) and not hasattr(str, args[1]))
        closed = isinstance(args[0], Instance) and OPEN not in args[0].attributes and not isinstance(args[0], Unknown)
        if name == "hasattr":
            return (not missing) if closed else Unknown("call", frame.module.excerpt(node))
        if missing and closed and len(args) > 2:
            return args[2]
        return value

    def attribute(self, base: Any, name: str, node: ast.expr, frame: Frame) -> Any:
        """An attribute of a value."""
        raise NotImplementedError

    @staticmethod
    def _isinstance(value: Any, kinds: Any, text: str) -> Any:
        types = {
            f"builtins.{kind.__name__}": kind for kind in (str, int, float, bool, list, dict, tuple, set)
        }
        wanted = kinds if isinstance(kinds, tuple) else (kinds,)
        if is_known(value) and all(isinstance(kind, External | Class) for kind in wanted):
            return any(isinstance(value, types[kind.name]) for kind in wanted if isinstance(kind, External) and kind.name in types)
        if isinstance(value, Instance) and all(isinstance(kind, External) and kind.name in types for kind in wanted):
            return False
        if isinstance(value, Joined) and wanted == (External("builtins.str"),):
            return True
        if isinstance(value, Instance) and value.cls in wanted:
            return True
        return Unknown("condition", text)

    # pytest, environment, patches

    def _special(self, name: str, node: ast.Call, frame: Frame) -> Any:  # noqa: C901, PLR0911
        match name:
            case "setenv" if len(node.args) >= 2:
                key, value = (self.evaluate(arg, frame) for arg in node.args[:2])
                self.set_environment(key, value, frame.module.place(node))
                return None
            case "delenv" if node.args:
                key = self.evaluate(node.args[0], frame)
                if isinstance(key, str):
                    self.run.environment.pop(key, None)
                return None
            case "setattr" if isinstance(node.func, ast.Attribute):
                if not (node.args and _harmless(node.args[0])):
                    self.run.patched.append(frame.module.excerpt(node))
                return None
            case "param" if _rooted(node.func, "pytest"):
                return self._param(node, frame)
            case "raises" if node.args:
                return self._raises(node, frame)
            case "skip" if _rooted(node.func, "pytest"):
                raise Stopped
            case "dict" if isinstance(node.func, ast.Attribute) and terminal(node.func.value) == "patch":
                return self._patch_dict(node, frame)
            case "patch" | "object" if name == "patch" or (
                isinstance(node.func, ast.Attribute) and terminal(node.func.value) == "patch"
            ):
                return Patch(frame.module.excerpt(node))
            case "context" if isinstance(node.func, ast.Attribute):
                return Patch("", environment=True)
            case "getfixturevalue" if node.args:
                wanted = self.evaluate(node.args[0], frame)
                return self.fixture_value(wanted) if isinstance(wanted, str) else Unknown("fixture", "")
            case _:
                return NotImplemented

    def _param(self, node: ast.Call, frame: Frame) -> Param:
        args: list[Any] = []
        for arg in node.args:
            if isinstance(arg, ast.Starred):
                pure.extend(args, self.evaluate(arg.value, frame))
            else:
                args.append(self.evaluate(arg, frame))
        name: str | None = None
        marks: tuple[ast.expr, ...] = ()
        for keyword in node.keywords:
            if keyword.arg == "id":
                given = self.evaluate(keyword.value, frame)
                name = str(given) if isinstance(given, str) else "?"
            elif keyword.arg == "marks":
                value = keyword.value
                marks = tuple(value.elts) if isinstance(value, ast.List | ast.Tuple) else (value,)
        return Param(tuple(args), name, marks, frame)

    def fixture_value(self, name: str) -> Any:
        """The value of a fixture for the test in progress."""
        raise NotImplementedError

    def _raises(self, node: ast.Call, frame: Frame) -> Raises:
        value = self.evaluate(node.args[0], frame)
        kinds = value if isinstance(value, tuple) else (value,)
        names = tuple(
            item.last if isinstance(item, External) else item.name if isinstance(item, Class) else "Exception"
            for item in kinds
        )
        match: str | None = None
        for keyword in node.keywords:
            if keyword.arg == "match":
                pattern = self.evaluate(keyword.value, frame)
                match = str(pattern) if isinstance(pattern, str) else None
        return Raises(Negative(names, match, frame.module.place(node)))

    def _patch_dict(self, node: ast.Call, frame: Frame) -> Patch:
        args, keywords = self.arguments(node, frame)
        if args and isinstance(args[0], External) and args[0].name == "os.environ":
            values = args[1] if len(args) > 1 and isinstance(args[1], dict) else Keys()
            for key, value in {**values, **keywords}.items():
                self.set_environment(key, value, frame.module.place(node))
            return Patch("", environment=True)
        return Patch(frame.module.excerpt(node))

    def set_environment(self, key: Any, value: Any, where: Location) -> None:
        """Set a variable of the environment from here on."""
        if isinstance(key, str):
            self.run.environment[str(key)] = value
            self.run.environment.where[str(key)] = where

    def environment_value(self, key: Any, default: Any) -> Any:
        """What `os.environ.get(key, default)` gives: what was set before, else the default, which is then assumed."""
        if not isinstance(key, str):
            return Unknown("environment", "")
        if key in self.run.environment:
            return self.run.environment[key]
        if isinstance(default, Unknown):
            return Unknown("environment", key)
        if not self.run.joined:
            text = f"{key} is not set in the environment"
            if text not in self.run.assumed:
                self.run.assumed.append(text)
            return default
        return Unknown("environment", key, (default,) if default is not None else ())

    # Functions and classes

    def call_function(
        self, function: Function, args: list[Any], keywords: Keys, given: Mapping[str, Location] | None = None
    ) -> Any:
        """Run a function that is read, and give what it returns (or yields, as a list)."""
        run = self.run
        node = function.node
        if run.depth >= self.config.limits.depth or run.stack.count(id(node)) >= 2:
            return Unknown("recursion", function.name)
        key = _memo_key(function, args, keywords)
        if key is not None and key in self._memo:
            return pure.duplicate(self._memo[key][0])
        before = self._trace()
        value = self._call_function(function, args, keywords, given)
        if key is not None and before == self._trace() and not function.name.startswith("__"):
            # The function is kept too: the key holds its address.
            self._memo[key] = (pure.duplicate(value), function)
        return value

    def _trace(self) -> tuple[object, ...]:
        """What a function without effects leaves alone."""
        run = self.run
        counts = (len(run.taken), len(run.assumed), len(run.records), len(run.patched), len(run.guards))
        inner = len(run.record.constructs) if run.record is not None else -1
        return (*counts, inner, repr(run.environment) if run.environment else "")

    def _call_function(
        self, function: Function, args: list[Any], keywords: Keys, given: Mapping[str, Location] | None = None
    ) -> Any:
        run = self.run
        node = function.node
        parent = function.closure if isinstance(function.closure, Frame) else None
        frame = Frame(function.module, {}, parent, function, self._qualified(function))
        given = self._bind(function, args, keywords, frame, given or {})
        if run.record is not None:
            frame.given = given
            run.record.ranges.append((function.module.shown, node.lineno, node.end_lineno or node.lineno))
        run.depth += 1
        run.stack.append(id(node))
        try:
            if isinstance(node, ast.Lambda):
                return self.evaluate(node.body, frame)
            frame.slice = self.slice_of(function)
            frame.yields = []
            self.execute(node.body, frame)
        finally:
            run.depth -= 1
            run.stack.pop()
        return self._result(function, frame)

    def _result(self, function: Function, frame: Frame) -> Any:
        if not _is_generator(function.node):
            return frame.returns
        if decorated(function, "fixture") or decorated(function, "contextmanager") or decorated(function, "asynccontextmanager"):
            return frame.yields[0] if frame.yields else Unknown("yield", function.name)
        return Items(frame.yields or ())

    @staticmethod
    def _qualified(function: Function) -> str:
        return f"{function.owner.name}.{function.name}" if function.owner is not None else function.name

    def slice_of(self, function: Function, *, value: bool = True) -> Any:
        """What matters in a function, remembered on its node."""
        node = function.node
        assert not isinstance(node, ast.Lambda)
        key = f"_staticfire_slice_{value}"
        found = getattr(node, key, None)
        if found is None:
            keeps = node.name in {"__init__", "__post_init__", "setup_method", "setup_class", "setUp"}
            found = slice_block(node, self.reach(function.module), value=value, keeps=keeps)
            setattr(node, key, found)
        return found

    def _bind(
        self, function: Function, args: list[Any], keywords: Keys, frame: Frame, given: Mapping[str, Location]
    ) -> dict[str, Location]:
        spec = function.node.args
        names = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
        places: dict[str, Location] = {}
        values = list(args)
        if function.bound is not None and names:
            frame.names[names.pop(0)] = function.bound
        elif function.owner is not None and names and names[0] in {"self", "cls"} and not decorated(function, "staticmethod"):
            frame.names[names.pop(0)] = values.pop(0) if values else Unknown("parameter", "self")
        open_rest: Unknown | None = None
        for name in names:
            if values and isinstance(values[0], Rest):
                open_rest = values[0].why
                break
            if not values:
                break
            frame.names[name] = values.pop(0)
            if name in given:
                places[name] = given[name]
        if spec.vararg is not None:
            frame.names[spec.vararg.arg] = tuple(values)
        extra = Keys()
        extra.rest = keywords.rest
        every = [*names, *(arg.arg for arg in spec.kwonlyargs)]
        for key, value in keywords.items():
            target = frame.names if key in every else extra
            target[key] = value
            place = keywords.where.get(key)
            if place is not None and key in every:
                places[key] = place
            elif place is not None:
                extra.where[key] = place
        if spec.kwarg is not None:
            frame.names[spec.kwarg.arg] = extra
        places.update(self._defaults(function, frame, every, open_rest or keywords.rest))
        return places

    def _defaults(
        self, function: Function, frame: Frame, every: list[str], rest: Unknown | None
    ) -> dict[str, Location]:
        spec = function.node.args
        positional = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
        defaults: dict[str, ast.expr] = dict(zip(positional[len(positional) - len(spec.defaults) :], spec.defaults, strict=True))
        defaults.update(
            (arg.arg, node) for arg, node in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if node is not None
        )
        places = {}
        parent = function.closure if isinstance(function.closure, Frame) else Frame(function.module, {}, qualified=function.name)
        for name in every:
            if name in frame.names:
                continue
            if rest is not None:
                frame.names[name] = Unknown(rest.reason, rest.detail)
            elif name in defaults:
                frame.names[name] = self.evaluate(defaults[name], parent)
                places[name] = function.module.place(defaults[name])
            else:
                frame.names[name] = Unknown("parameter", name)
        return places

    def instantiate(self, cls: Class, args: list[Any], keywords: Keys, given: Mapping[str, Location] | None = None) -> Any:
        """Make an object of a class that is read."""
        fields = self.fields(cls)
        instance = Instance(cls)
        if fields is not None:
            return self._fill(instance, fields, args, keywords)
        initial = self.class_attribute(cls, "__init__")
        if isinstance(initial, Function):
            if self.run.depth > self.config.limits.depth:
                return Unknown("recursion", cls.name)
            self.call_function(self.bind(initial, instance), args, keywords, given)
            return instance
        if self.is_enum(cls):
            return Unknown("call", cls.name)
        foreign = self.foreign_base(cls)
        if foreign and foreign != "object":
            instance.attributes[OPEN] = Unknown("object", foreign)
            if foreign in forms.NAMES and self.run.record is not None:
                self._direct(forms.NAMES[foreign], args, keywords, "")
        return instance

    def _fill(self, instance: Instance, fields: list[Any], args: list[Any], keywords: Keys) -> Instance:
        values = list(args)
        for name, default, owner in fields:
            if values and isinstance(values[0], Rest):
                instance.attributes[name] = values[0].why
            elif values:
                instance.attributes[name] = values.pop(0)
            elif name in keywords:
                instance.attributes[name] = keywords[name]
            elif keywords.rest is not None:
                instance.attributes[name] = keywords.rest
            elif default is not None:
                instance.attributes[name] = self._field_default(default, owner)
            else:
                instance.attributes[name] = Unknown("attribute", name)
        return instance

    def _field_default(self, default: ast.expr, owner: Class) -> Any:
        frame = Frame(owner.module, self.members(owner), qualified=owner.name)
        if isinstance(default, ast.Call) and terminal(default.func) in {"field", "Field"}:
            for keyword in default.keywords:
                if keyword.arg == "default":
                    return self.evaluate(keyword.value, frame)
                if keyword.arg in {"default_factory", "factory"}:
                    factory = self.evaluate(keyword.value, frame)
                    return self.apply(factory, [], Keys(), default, frame)
            return Unknown("attribute", "field")
        return self.evaluate(default, frame)

    # Sites

    def site(self, node: ast.Call, signature: forms.Signature, frame: Frame, target: Any = None) -> Any:
        """A call that constructs an engine: record it, or add to the site whose wrapper is being looked into."""
        run = self.run
        target = target if target is not None else self.evaluate(node.func, frame)
        args, keywords = self.arguments(node, frame)
        if isinstance(target, Bound):
            merged = Keys(target.keywords)
            pure.merge(merged, keywords)
            target, args, keywords = target.function, [*target.args, *args], merged
        if run.record is not None:
            return self._within(signature, target, args, keywords, node, frame)
        record = Record(frame.module.place(node), signature.form, self.enclosing(node, frame), run.caller)
        self._note(record)
        given = {name: frame.module.place(arg) for name, arg in zip(self._parameters(target), node.args, strict=False)}
        run.record = record
        try:
            made: Any = Unknown("object", frame.module.excerpt(node.func))
            if isinstance(target, Function):
                made = self.call_function(target, args, keywords, given)
            elif isinstance(target, Class):
                made = self.instantiate(target, args, keywords, given)
            if not record.constructs:
                wrapped = signature.form in {"vllm_runner", "wrapper"} and not isinstance(target, External)
                missing = "wrapper" if wrapped else ""
                made = self._direct(signature, args, keywords, missing, node=node, frame=frame)
        except Stopped:
            if not record.constructs:
                self._direct(signature, args, keywords, "wrapper", node=node, frame=frame)
            raise
        finally:
            run.record = None
        # What a wrapper's object does later is of no interest: only its making is.
        return made if isinstance(made, Made) else Unknown("object", frame.module.excerpt(node.func))

    def _within(
        self, signature: forms.Signature, target: Any, args: list[Any], keywords: Keys, node: ast.Call, frame: Frame
    ) -> Any:
        assert self.run.record is not None
        before = len(self.run.record.constructs)
        made: Any = None
        if isinstance(target, Function):
            made = self.call_function(target, args, keywords)
        elif isinstance(target, Class):
            made = self.instantiate(target, args, keywords)
        if len(self.run.record.constructs) > before:
            return made
        return self._direct(signature, args, keywords, "", node=node, frame=frame)

    def _parameters(self, target: Any) -> list[str]:
        function = self.class_attribute(target, "__init__") if isinstance(target, Class) else target
        if not isinstance(function, Function):
            return []
        names = [arg.arg for arg in (*function.node.args.posonlyargs, *function.node.args.args)]
        return names[1:] if isinstance(target, Class) else names

    def _note(self, record: Record) -> None:
        run = self.run
        record.environment = Keys(run.environment)
        record.negative = run.raises[-1] if run.raises else None
        record.patched = run.patched[-1] if run.patched else None
        record.guards = tuple(run.guards)
        record.assumed = tuple(run.assumed)
        if not run.muted:
            run.records.append(record)

    def enclosing(self, node: ast.AST, frame: Frame) -> str:
        """Qualified name of the function that a node stands in."""
        line = getattr(node, "lineno", 0)
        best = ""
        for function, owners in frame.module.functions:
            if function.lineno <= line <= (function.end_lineno or 0):
                best = ".".join([*(owner.name for owner in owners), function.name])
        return best

    def _direct(  # noqa: PLR0913
        self,
        signature: forms.Signature,
        args: list[Any],
        keywords: Keys,
        missing: str,
        *,
        node: ast.Call | None = None,
        frame: Frame | None = None,
    ) -> Made:
        """Read a construction by its signature alone."""
        typed = Keys(keywords)
        for position, (name, value) in enumerate(zip(signature.positional, args, strict=False)):
            if isinstance(value, Rest):
                missing = missing or value.why.reason
                break
            typed[name] = value
            if node is not None and frame is not None and position < len(node.args):
                arg = node.args[position]
                given = frame.given.get(arg.id) if isinstance(arg, ast.Name) else None
                typed.where[name] = given or frame.module.place(arg)
        for name in signature.ignored:
            typed.pop(name, None)
        if typed.rest is not None:
            missing = missing or typed.rest.reason
        if signature.model == "model" and "model_name" in typed and "model" not in typed:
            typed["model"] = typed.pop("model_name")
            typed.where["model"] = typed.where.pop("model_name", None)
        record = self.run.record
        construct = Construct(typed, model_key=signature.model, missing=missing)
        if record is not None:
            construct.where = frame.module.place(node) if node is not None and frame is not None else record.where
            if signature.flags:
                self._commands(signature, typed, construct)
            else:
                record.constructs.append(construct)
        return Made(signature.form, typed, construct)

    def _commands(self, signature: forms.Signature, typed: Keys, base: Construct) -> None:
        assert self.run.record is not None
        lists: list[Any] = []
        for name in signature.flags:
            value = typed.get(name, Items())
            if name == "all_args":
                elements = pure.sequence(value)
                lists.extend(elements if elements is not None else [Unknown("value", name)])
            else:
                lists.append(value)
        environments = [typed.get(name) for name in signature.environments]
        if "all_envs" in signature.environments:
            environments = list(pure.sequence(typed.get("all_envs")) or [])
        for index, value in enumerate(lists):
            words = Items(value) if isinstance(value, list | tuple) else Items([Rest(_why(value))])
            environment = environments[index] if index < len(environments) else None
            keywords = Keys({"model": typed["model"]} if "model" in typed else {})
            keywords.inherit(typed)
            construct = Construct(keywords, words, 0, base.where, missing=base.missing)
            if isinstance(environment, dict):
                construct.environment = Keys(environment)
            if (overrides := typed.get("override_hf_configs")) is not None:
                keywords["hf_overrides"] = overrides
            self.run.record.constructs.append(construct)

    def command(self, items: Items, node: ast.expr, frame: Frame) -> None:
        """A list that starts with the words of an engine's command."""
        start = forms.engine_command([item if isinstance(item, str) else "" for item in items[:14]])
        if start is None:
            return
        construct = Construct(Keys(), items, start, frame.module.place(node))
        items.command = construct
        run = self.run
        if run.record is not None:
            run.record.constructs.append(construct)
            return
        form: Form = "command"
        record = Record(frame.module.place(node), form, self.enclosing(node, frame), run.caller, [construct])
        self._note(record)


def _why(value: Any) -> Unknown:
    return value if isinstance(value, Unknown) else Unknown("value", type(value).__name__)


def configuration_class(target: External) -> bool:
    """Whether a foreign name is one of the engine's configuration classes."""
    last = target.last
    return target.name.partition(".")[0] in forms.ENGINE_PACKAGES and last[:1].isupper() and not last.isupper()


def _is_method(node: ast.expr) -> bool:
    """Whether a call's target is a method of an object rather than a name of a module."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}


def _rooted(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name


def _harmless(node: ast.expr) -> bool:
    """Whether what is patched is none of the engine's or the platform's."""
    text = node.value if isinstance(node, ast.Constant) else ""
    while isinstance(node, ast.Attribute):
        node = node.value
    root = node.id if isinstance(node, ast.Name) else str(text).partition(".")[0]
    return root in {"sys", "os", "time", "builtins", "logging", "random"}


def _memo_key(function: Function, args: list[Any], keywords: Keys) -> tuple[Any, ...] | None:
    """What the value of a call depends on, None if that cannot be told."""
    if isinstance(function.node, ast.Lambda) or keywords.rest is not None:
        return None
    if function.closure is not None and function.owner is None:
        return None
    values = (*args, *keywords.values())
    if not all(value is None or isinstance(value, str | int | float | bool | Member) for value in values):
        return None
    bound = function.bound
    if bound is not None and not isinstance(bound, Instance | Class):
        return None
    return (
        id(function.node), id(bound), tuple((type(value), value) for value in args),
        tuple((name, type(value), value) for name, value in keywords.items()),
    )  # fmt: skip


def _is_generator(node: ast.AST) -> bool:
    found = getattr(node, "_staticfire_generator", None)
    if found is None:
        found = not isinstance(node, ast.Lambda) and any(
            isinstance(child, ast.Yield | ast.YieldFrom) for child in _own(node)
        )
        node._staticfire_generator = found  # type: ignore[attr-defined]  # noqa: SLF001 - remembered on the node
    return bool(found)


def _own(node: ast.AST) -> Any:
    pending: list[ast.AST] = list(ast.iter_child_nodes(node))
    while pending:
        child = pending.pop()
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            pending.extend(ast.iter_child_nodes(child))


__all__ = ["Calls", "Member", "configuration_class", "deeply_known"]
