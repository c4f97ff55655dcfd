"""The audit: every field that is written after the copy, read elsewhere, and brought there by nothing."""

import gc
import os
from collections import Counter
from functools import lru_cache
from pathlib import Path as File
from typing import Final

from staticfire.harness.errors import InputError
from staticfire.harness.sync.source.channels import Channel, Found, find
from staticfire.harness.sync.source.facts import Function
from staticfire.harness.sync.source.graph import Graph
from staticfire.harness.sync.source.inference import Inference, Instance
from staticfire.harness.sync.source.processes import Sides, place
from staticfire.harness.sync.source.program import Program
from staticfire.harness.sync.source.reading import Tree, read, tree_of
from staticfire.harness.sync.source.report import Coverage, Finding, Place, Process, Report, Shared, Site
from staticfire.harness.sync.source.sections import Path
from staticfire.harness.sync.source.sharing import Sharing
from staticfire.harness.sync.source.uses import Uses

PROCESSES: Final = 2


def audit(root: File, processes: int | None = None) -> Report:
    """Read a tree and find the fields that do not travel. Nothing in it is imported or run.

    Args:
        root: A package, or a folder with packages in it.
        processes: How many processes parse; as many as there are cores, at most two, where left out.

    Returns:
        The findings, and what was looked at.

    Raises:
        InputError: There is no Python, or no message that brings a configuration from an engine to its client.
    """
    collecting = gc.isenabled()
    gc.disable()  # a whole program in memory, every object of it needed to the end: nothing to collect, much to walk
    try:
        return audit_tree(read(root, processes or min(PROCESSES, os.cpu_count() or 1)), root)
    finally:
        if collecting:
            gc.enable()


def audit_tree(tree: Tree, root: File) -> Report:
    """Audit what was read; see `audit`."""
    program = Program(tree.modules)
    inference = Inference(program)
    found = find(program, inference, lru_cache(lambda path: tree_of(tree.files[path])))
    if found is None:
        unread = f" {len(tree.unread)} files could not be parsed." if tree.unread else ""
        raise InputError(
            f"{root}: no message is made there out of a configuration and applied to a client's own, so there is "
            f"nothing to compare with.{unread} Name the folder of an engine's package."
        )
    graph = Graph(program, inference)
    sides = place(program, graph, found)
    uses = Uses(found.sections, sides, graph)
    brings_back = _brings_back(program, inference, found, sides)
    judge = _Judge(found, sides, uses, Sharing(sides, graph), brings_back=brings_back)
    judged = sorted(
        (finding for path in uses.writes if (finding := judge.judge(path))), key=lambda finding: finding.field
    )
    undecided = uses.undecided + Counter({"call of a method that many classes have": sum(graph.undecided.values())})
    coverage = Coverage(
        files=len(tree.modules),
        unread=tuple(tree.unread),
        fields=len(found.sections.fields()),
        writes=uses.seen,
        placed=dict(uses.placed),
        undecided={why: times for why, times in undecided.items() if times},
        channels={channel.name: len(channel.carries.keys() & channel.applies.keys()) for channel in found.channels},
        left=tree.left,
    )
    return Report(
        root=str(root),
        findings=tuple(finding for finding in judged if finding.sharing is None),
        partly=tuple(finding for finding in judged if finding.sharing is not None),
        coverage=coverage,
    )


def _brings_back(program: Program, inference: Inference, found: Found, sides: Sides) -> bool:
    """Whether whoever starts workers takes a whole configuration from them."""
    return any(
        isinstance(value, Instance) and value.cls is found.sections.root
        for cls in sides.starters
        for name in cls.methods
        for method in program.functions[cls.module, cls.name, name]
        for value in inference.annotated(method.returns, program.modules[cls.module])
    )


class _Judge:
    def __init__(self, found: Found, sides: Sides, uses: Uses, sharing: Sharing, *, brings_back: bool) -> None:
        self.found = found
        self.sides = sides
        self.uses = uses
        self.sharing = sharing
        self.brings_back = brings_back

    def judge(self, path: Path) -> Finding | None:
        """The finding about a field, None where it travels or nobody reads it."""
        writes, reads = self.uses.writes[path], self.uses.reads.get(path)
        if not reads:
            return None
        carrying = next((channel for channel in self.found.channels if path in channel.carries), None)
        applying = next((channel for channel in self.found.channels if path in channel.applies), None)
        process: Process = "worker" if "worker" in writes else "engine core"
        carried = carrying is not None and carrying is applying
        if carried and (self.brings_back or self._settled(path)):
            return None
        return Finding(
            field=str(path),
            write=min(writes[process]),
            process=process,
            reason=self._reason(path, carrying, applying),
            read=reads[0],
            carried_by=None if carrying is None else carrying.name,
            applied=None if applying is None else Place(*applying.applies[path][:2]),
            more=tuple(sorted({place for places in writes.values() for place in places} - {min(writes[process])})),
            sharing=self._sharing(path) if carried else None,
        )

    def _settled(self, path: Path) -> bool:
        """Whether the engine core writes a field itself, wherever its workers are."""
        writers = self.uses.writers[path]
        return "engine core" in self.uses.writes[path] or any(id(writer) in self.sides.engine for writer, _ in writers)

    def _sharing(self, path: Path) -> Shared | None:
        """Where a field that workers alone write is carried all the same; None where it nowhere is."""
        together, apart = set(), set()
        for writer, base in self.uses.writers[path]:
            together |= {Site(cls.name, Place(cls.path, cls.line)) for cls in self.sharing.together(writer, base)}
            apart |= {
                Site(_name(spawn.site), Place(spawn.site.path, spawn.line)) for spawn in self.sharing.apart(writer)
            }
        return Shared(tuple(sorted(together)), tuple(sorted(apart))) if together else None

    def _reason(self, path: Path, carrying: Channel | None, applying: Channel | None) -> str:
        names = ", ".join(channel.name for channel in self.found.channels)
        if carrying is None:
            return f"no field of {names} is made from it"
        field, file, line = carrying.carries[path]
        sent = f"{carrying.name}.{field} is taken at {file}:{line} from the engine core's copy"
        if applying is None:
            return f"{sent}, but no client takes it over"
        return f"{sent}, which worker processes do not write, and the engine core does not settle it itself"


def _name(function: Function) -> str:
    return f"{function.owner}.{function.name}" if function.owner else function.name
