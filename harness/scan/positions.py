"""Where a part of a YAML scalar stands in its file, though folding, indentation and quotes are gone from it."""

from bisect import bisect_right
from collections.abc import Sequence

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from staticfire.harness.scan.base import Location
from staticfire.harness.scan.shell import Place


def inside(node: ScalarNode, lines: Sequence[str], path: str) -> Place:
    """Places of parts of a scalar's text.

    The characters of the text but white space are found again in the file, in order; where they are not, as with
    escapes for them, every part is the whole scalar.

    Args:
        node: The scalar.
        lines: Of the file.
        path: The file, as locations name it.
    """
    start, end = node.start_mark, node.end_mark
    first = start.line + (1 if node.style in {"|", ">"} else 0)
    begin = 0 if node.style in {"|", ">"} else start.column
    whole = Location(path, start.line + 1, start.column + 1, end.line + 1, end.column + 1)
    found = _positions(node, lines[first : end.line + 1], begin)
    solid = [index for index, char in enumerate(node.value) if not char.isspace()]
    if found is None:
        return lambda _first, _after: whole

    def place(begins: int, after: int) -> Location:
        one = found[min(bisect_right(solid, begins - 1), len(found) - 1)]
        other = found[max(bisect_right(solid, after - 1) - 1, 0)]
        return Location(path, first + one[0] + 1, one[1] + 1, first + other[0] + 1, other[1] + 2)

    return place


def _positions(node: ScalarNode, lines: Sequence[str], begin: int) -> list[tuple[int, int]] | None:
    """Line and column of every character of a text but white space; None where they cannot be found."""
    skipped = {"'": "'", '"': '"\\'}.get(node.style or "", "")
    wanted = [char for char in node.value if not char.isspace()]
    found: list[tuple[int, int]] = []
    for row, line in enumerate(lines):
        for column in range(begin if row == 0 else 0, len(line)):
            if len(found) == len(wanted):
                return found
            char = line[column]
            if char == wanted[len(found)]:
                found.append((row, column))
            elif not char.isspace() and char not in skipped:
                return None
    return found if len(found) == len(wanted) else None


def last(node: Node) -> Node:
    """The node at whose end a collection ends: in block style its own mark stands at what comes next."""
    for _ in range(100):
        if isinstance(node, SequenceNode) and node.value and not node.flow_style:
            node = node.value[-1]
        elif isinstance(node, MappingNode) and node.value and not node.flow_style:
            node = node.value[-1][1]
        else:
            break
    return node


__all__ = ["inside", "last"]
