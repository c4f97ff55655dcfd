"""A probe with rules of our own, and matrices small enough to count by hand."""

from itertools import product

from staticfire.harness.matrix.matrix import parse
from staticfire.harness.probe.base import Accepted, Rejected

HEAD = """
[matrix]
name = "toy"
description = "A toy"

"""


class ToyProbe:
    """Knows the keywords a to f, each with any value, and refuses by the rules it is given."""

    def __init__(self, **rules):
        self.rules = rules

    def ask(self, model, config):
        broken = tuple(sorted(code for code, rule in self.rules.items() if rule({"model": model, **config})))
        return Rejected("rule", "because", "toy.py:1", broken) if broken else Accepted()

    def field_fault(self, keyword, value):
        if keyword not in "abcdef":
            return f"{keyword!r} is no keyword"
        return f"{keyword}={value!r} is bad" if value == "bad" else None

    def rule_name(self, code):
        return f"rule-{code}" if code in self.rules else None

    def rule_codes(self):
        return tuple(sorted(self.rules))


def toy(body, **rules):
    return parse(HEAD + body, "toy.toml", ToyProbe(**(rules or {"R1": lambda c: False, "R2": lambda c: False})))


def every_row(document):
    return [dict(zip(document.axes, values, strict=True)) for values in product(*document.axes.values())]
