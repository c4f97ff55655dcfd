"""A pipeline as the YAML that an agent uploads: block text for scripts, every `$` escaped, nothing reordered."""

from collections.abc import Mapping
from typing import Any

import msgspec
import yaml

from staticfire.harness.errors import InputError
from staticfire.harness.pipeline.escape import escaped
from staticfire.harness.pipeline.limits import JOBS_PER_UPLOAD
from staticfire.harness.pipeline.steps import Group, Pipeline, Step, jobs


class _Dumper(yaml.SafeDumper):
    """Indents lists below their key, and shows text of several lines as such."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 -- PyYAML's signature
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 -- PyYAML's signature
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def document(pipeline: Pipeline) -> dict[str, Any]:
    """The pipeline as plain values, escaped.

    Raises:
        InputError: Texts that cannot be escaped, all of them, each with its step and column.
    """
    faults: list[str] = []
    env = {"env": pipeline.env} if pipeline.env else {}
    made = {
        **{name: plain(value, f"{name}", faults) for name, value in env.items()},
        "steps": [
            plain(msgspec.to_builtins(step), f"step {step.key}", faults) for step in pipeline.steps
        ],
    }  # fmt: skip
    if faults:
        raise InputError("\n".join(faults))
    return made


def text(pipeline: Pipeline, head: str = "") -> str:
    """The file.

    Args:
        pipeline: What to write.
        head: A comment that it begins with, without the `#`.
    """
    comment = "".join(f"# {line}\n" for line in head.splitlines())
    return comment + yaml.dump(
        document(pipeline), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000, indent=2
    )


def parts(pipeline: Pipeline, most: int = JOBS_PER_UPLOAD) -> tuple[Pipeline, ...]:
    """The pipeline in pieces that one upload takes each, in order; a group may go on in the next piece."""
    made: list[list[Step]] = [[]]
    left = most
    for step in pipeline.steps:
        for leaf in step.steps if isinstance(step, Group) else [step]:
            count = 0 if isinstance(leaf, Group) else jobs(leaf)
            if count > left and made[-1]:
                made.append([])
                left = most
            left -= count
            _append(made[-1], step, leaf)
    return tuple(msgspec.structs.replace(pipeline, steps=tuple(steps)) for steps in made)


def _append(steps: list[Step], step: Step, leaf: Step) -> None:
    if not isinstance(step, Group):
        steps.append(step)
        return
    assert not isinstance(leaf, Group)
    last = steps[-1] if steps else None
    if isinstance(last, Group) and last.key == step.key:
        steps[-1] = msgspec.structs.replace(last, steps=(*last.steps, leaf))
    else:
        steps.append(msgspec.structs.replace(step, steps=(leaf,)))


def plain(value: Any, where: str, faults: list[str]) -> Any:
    """A value with every `$` in its texts escaped; texts that have no such form are added to the faults."""
    match value:
        case str():
            try:
                return escaped(value)
            except ValueError as error:
                faults.append(f"{where}: {error}: {value[:120]!r}")
                return value
        case Mapping():
            return {key: plain(item, f"{where}: {key}", faults) for key, item in value.items()}
        case list() | tuple():
            return [plain(item, where, faults) for item in value]
        case _:
            return value
