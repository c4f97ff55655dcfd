"""Read a matrix file key by key: unknown keys, wrong types and unknown names are faults, with line and nearest name."""

import re
from collections.abc import Mapping
from typing import Any, get_args

from staticfire.harness.errors import nearest
from staticfire.harness.matrix.cell import UNSET
from staticfire.harness.matrix.document import Constraint, Document, Kind, Row, Submodel, Value, same
from staticfire.harness.matrix.faults import Faults
from staticfire.harness.matrix.ids import label
from staticfire.harness.matrix.workload import PROMPTS, RELATION_NAMES, Workload
from staticfire.harness.models import catalog
from staticfire.harness.probe.base import Probe

_TOP = ("matrix", "fixed", "axes", "submodel", "constraint", "seed", "cover", "workload")
_KINDS: tuple[Kind, ...] = get_args(Kind)
MAX_STRENGTH = 6
MAX_TOKENS = 1024


class Reader:
    """Reads one parsed TOML document; faults go to `faults`."""

    def __init__(self, raw: Mapping[str, Any], faults: Faults, probe: Probe) -> None:
        """Take the parsed document, where to note faults, and whom to ask about keywords."""
        self._raw = raw
        self._faults = faults
        self._probe = probe

    def read(self) -> Document:
        """Read the whole file. Its parts mean nothing while `faults` holds any."""
        self._unknown((), self._raw, _TOP)
        about = self._table(("matrix",), ("name", "description"))
        name = self._text(("matrix", "name"), about.get("name"))
        if name and not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name):
            self._faults.add(("matrix", "name"), f"must be lower-case letters, digits, '.', '_' and '-', got {name!r}")
        description = self._text(("matrix", "description"), about.get("description"))
        axes = self._axes()
        cover = self._table(("cover",), ("strength", "seed", "rest"))
        return Document(
            name=name,
            description=description,
            where=self._faults.where,
            fixed=self._fixed(axes),
            axes=axes,
            submodels=tuple(self._submodel(i, raw, axes) for i, raw in self._tables("submodel")),
            constraints=tuple(self._constraint(i, raw, axes) for i, raw in self._tables("constraint")),
            seeds=tuple(self._seed(i, raw, axes) for i, raw in self._tables("seed")),
            strength=self._whole(("cover", "strength"), cover.get("strength", 2), 1, MAX_STRENGTH),
            cover_seed=self._whole(("cover", "seed"), cover.get("seed", 0), 0, 2**63),
            rest=self._row(("cover", "rest"), cover.get("rest", {}), axes),
            workload=self._workload(),
        )

    def _axes(self) -> dict[str, tuple[Value, ...]]:
        raw = self._raw.get("axes")
        if not isinstance(raw, dict) or "model" not in raw:
            self._faults.add(("axes",), "a matrix needs [axes] with at least the axis 'model'")
        axes = {}
        for name, values in raw.items() if isinstance(raw, dict) else ():
            path = ("axes", name)
            if not isinstance(values, list) or not values:
                self._faults.add(path, f"must be a list of at least one value, got {values!r}")
                continue
            axes[name] = tuple(value for value in values if self._axis_value(path, name, value))
            for i, value in enumerate(axes[name]):
                if any(same(value, other) for other in axes[name][:i]):
                    self._faults.add(path, f"the value {value!r} is there twice")
        self._clashing_labels(axes)
        return axes

    def _axis_value(self, path: tuple[str, ...], name: str, value: Any) -> bool:
        """Whether a value can be used; a keyword that the engine does not know fails with its first value."""
        if not isinstance(value, str | int | float):
            self._faults.add(path, f"a value must be a string, number or boolean, got {value!r}")
        elif name == "model":
            known = catalog.names()
            if value not in known:
                self._faults.add(path, f"no model named {value!r}.{nearest(str(value), known)}")
        elif value == UNSET:
            if (fault := self._probe.field_fault(name, None)) is not None:
                self._faults.add(path, fault)
        elif (fault := self._probe.field_fault(name, value)) is not None:
            self._faults.add(path, fault)
        return isinstance(value, str | int | float)

    def _clashing_labels(self, axes: Mapping[str, tuple[Value, ...]]) -> None:
        seen: dict[str, tuple[str, Value]] = {}
        for name, values in axes.items():
            for value in values:
                text = label(name, value)
                if text in seen and text:
                    other = seen[text]
                    self._faults.add(
                        ("axes", name), f"{value!r} and {other[1]!r} of axis {other[0]!r} are both {text!r} in cell ids"
                    )
                seen.setdefault(text, (name, value))

    def _fixed(self, axes: Mapping[str, Any]) -> dict[str, Any]:
        fixed = self._raw.get("fixed", {})
        if not isinstance(fixed, dict):
            self._faults.add(("fixed",), f"must be a table, got {fixed!r}")
            return {}
        for name, value in fixed.items():
            if name in axes or name == "model":
                self._faults.add(("fixed", name), "is an axis as well" if name in axes else "must be an axis")
            elif (fault := self._probe.field_fault(name, value)) is not None:
                self._faults.add(("fixed", name), fault)
        return dict(fixed)

    def _workload(self) -> Workload:
        raw, plain = self._table(("workload",), ("prompts", "max_tokens", "relations")), Workload()
        prompts = raw.get("prompts", plain.prompts)
        if prompts not in PROMPTS:
            self._faults.add(("workload", "prompts"), f"must be one of {', '.join(PROMPTS)}, got {prompts!r}")
        listed = raw.get("relations", list(plain.relations))
        path = ("workload", "relations")
        if not isinstance(listed, list):
            self._faults.add(path, f"must be a list of relations, got {listed!r}")
            listed = []
        for name in listed:
            if name not in RELATION_NAMES:
                shown = ", ".join(RELATION_NAMES)
                self._faults.add(path, f"no relation {name!r}.{nearest(str(name), RELATION_NAMES)} Relations: {shown}.")
        tokens = self._whole(("workload", "max_tokens"), raw.get("max_tokens", plain.max_tokens), 1, MAX_TOKENS)
        return Workload(prompts, tokens, tuple(listed))

    def _submodel(self, index: int, raw: Mapping[str, Any], axes: Mapping[str, Any]) -> Submodel:
        path = ("submodel", index)
        self._unknown(path, raw, ("axes", "strength"))
        names = raw.get("axes")
        if not isinstance(names, list) or len(names) < 2 or len(set(map(str, names))) < len(names):
            self._faults.add((*path, "axes"), f"must list two different axes or more, got {names!r}")
            names = []
        for name in names:
            self._axis((*path, "axes"), name, axes)
        strength = self._whole((*path, "strength"), raw.get("strength"), 2, max(2, len(names)))
        return Submodel(tuple(map(str, names)), strength)

    def _constraint(self, index: int, raw: Mapping[str, Any], axes: Mapping[str, Any]) -> Constraint:
        path = ("constraint", index)
        self._unknown(path, raw, ("when", "reason", "kind", "rule", "issue"))
        kind = raw.get("kind")
        if kind not in _KINDS:
            self._faults.add(
                (*path, "kind"), f"must be one of {', '.join(_KINDS)}, got {kind!r}.{nearest(str(kind), _KINDS)}"
            )
        rule, issue = raw.get("rule"), raw.get("issue")
        if kind == "unsupported" and rule is None:
            self._faults.add(path, "an unsupported combination needs the rule by which the engine refuses it")
        if kind == "impossible" and rule is not None:
            self._faults.add((*path, "rule"), "an impossible combination is never asked, so it has no rule")
        if (kind == "broken") != (issue is not None):
            self._faults.add(path, "a broken combination, and only such a one, needs an issue")
        if rule is not None and rule not in self._probe.rule_codes():
            codes = self._probe.rule_codes()
            self._faults.add(
                (*path, "rule"), f"the engine has no rule {rule!r} that refuses.{nearest(str(rule), codes)}"
            )
        return Constraint(
            when=self._when((*path, "when"), raw.get("when"), axes),
            reason=self._text((*path, "reason"), raw.get("reason")),
            kind=kind if kind in _KINDS else "impossible",
            rule=str(rule) if rule is not None else None,
            issue=self._text((*path, "issue"), issue) if issue is not None else None,
            line=self._faults.lines.of(*path),
        )

    def _when(self, path: tuple[str | int, ...], raw: Any, axes: Mapping[str, Any]) -> dict[str, tuple[Value, ...]]:
        if not isinstance(raw, dict) or not raw:
            self._faults.add(path, f"must be a table of axes and their values, got {raw!r}")
            return {}
        when = {}
        for name, wanted in raw.items():
            here = (*path, name)
            if not self._axis(here, name, axes):
                continue
            negated = isinstance(wanted, dict)
            if negated:
                self._unknown(here, wanted, ("not",))
                wanted = wanted.get("not", [])  # noqa: PLW2901 -- the list inside `not` stands for the value
            listed = wanted if isinstance(wanted, list) else [wanted]
            for value in listed:
                self._value(here, value, axes[name])
            hit = [value for value in axes[name] if any(same(value, other) for other in listed) != negated]
            if not hit or len(hit) == len(axes[name]):
                self._faults.add(here, f"names {'every' if hit else 'no'} value of the axis")
            when[name] = tuple(hit)
        return when

    def _seed(self, index: int, raw: Mapping[str, Any], axes: Mapping[str, Any]) -> Row:
        return self._row(("seed", index), raw, axes)

    def _row(self, path: tuple[str | int, ...], raw: Any, axes: Mapping[str, Any]) -> Row:
        if not isinstance(raw, dict):
            self._faults.add(path, f"must be a table of axes and their values, got {raw!r}")
            return {}
        for name, value in raw.items():
            if self._axis((*path, name), name, axes):
                self._value((*path, name), value, axes[name])
        return dict(raw)

    def _axis(self, path: tuple[str | int, ...], name: Any, axes: Mapping[str, Any]) -> bool:
        if name not in axes:
            self._faults.add(path, f"no axis named {name!r}.{nearest(str(name), axes)} Axes: {', '.join(axes)}.")
        return name in axes

    def _value(self, path: tuple[str | int, ...], value: Any, values: tuple[Value, ...]) -> None:
        if not any(same(value, other) for other in values):
            shown = ", ".join(map(repr, values))
            near = nearest(str(value), map(str, values))
            self._faults.add(path, f"{value!r} is no value of the axis.{near} Values: {shown}.")

    def _tables(self, key: str) -> list[tuple[int, Mapping[str, Any]]]:
        raw = self._raw.get(key, [])
        if not isinstance(raw, list) or not all(isinstance(item, dict) for item in raw):
            self._faults.add((key,), f"must be written as [[{key}]]")
            return []
        return list(enumerate(raw))

    def _table(self, path: tuple[str, ...], allowed: tuple[str, ...]) -> Mapping[str, Any]:
        raw = self._raw.get(path[0], {})
        if not isinstance(raw, dict):
            self._faults.add(path, f"must be a table, got {raw!r}")
            return {}
        self._unknown(path, raw, allowed)
        return raw

    def _unknown(self, path: tuple[str | int, ...], raw: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
        for key in raw:
            if key not in allowed:
                self._faults.add((*path, key), f"unknown key.{nearest(key, allowed)} Allowed: {', '.join(allowed)}.")

    def _text(self, path: tuple[str | int, ...], value: Any) -> str:
        if not isinstance(value, str) or not value.strip():
            self._faults.add(path, f"must be a non-empty string, got {value!r}")
            return ""
        return value

    def _whole(self, path: tuple[str | int, ...], value: Any, low: int, high: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            self._faults.add(path, f"must be a whole number from {low} to {high}, got {value!r}")
            return low
        return value
