"""What only a solver can say about a matrix: dead constraints, unreachable values, seeds that cannot be."""

from staticfire.harness.matrix.document import Constraint, Document
from staticfire.harness.matrix.expand import Indexed
from staticfire.harness.matrix.faults import Faults


def check(document: Document, faults: Faults) -> None:
    """Note every contradiction between the parts of a matrix that are each well formed."""
    indexed = Indexed(document)
    valid = indexed.space(document.constraints)
    if not valid.feasible({}):
        faults.add(("constraint",), "the constraints together leave no valid row")
        return
    for i, constraint in enumerate(document.constraints):
        others = [other for other in document.constraints if other is not constraint]
        if not indexed.space(others, required=constraint).feasible({}):
            faults.add(
                ("constraint", i), "matches nothing that the other constraints leave; its rule cannot be broken alone"
            )
    for i, seed in enumerate(document.seeds):
        if not valid.feasible(indexed.partial(seed)):
            hit = [c for c in document.constraints if set(c.when) <= set(seed) and c.hits(seed)]
            why = f": {hit[0].reason}" if hit else " together"
            faults.add(("seed", i), f"the constraints exclude this row{why}")
    _unused_values(document, indexed, faults)


def _unused_values(document: Document, indexed: Indexed, faults: Faults) -> None:
    spaces = [indexed.space(document.constraints)]
    for constraint in document.constraints:
        if constraint.rule is not None:
            others: list[Constraint] = [c for c in document.constraints if c.rule != constraint.rule]
            spaces.append(indexed.space(others, required=constraint))
    for name, values in document.axes.items():
        used = [value for value in values if spaces[0].feasible(indexed.partial({name: value}))]
        if not used:
            faults.add(("axes", name), "the constraints leave no value of this axis valid")
        for value in values:
            if not any(space.feasible(indexed.partial({name: value})) for space in spaces):
                faults.add(("axes", name), f"no cell, valid or refused, can have the value {value!r}")
