"""The import directions and the no-torch rule hold, and the checker sees each kind of fault when one is planted."""

from pathlib import Path

import layering
import pytest

ROOT = Path(__file__).resolve().parents[2]


def plant(root: Path, **sources: str) -> Path:
    """Make a tiny checkout; `engine__config__a="..."` is the file engine/config/a.py."""
    for folder in layering.FOLDERS:
        (root / folder).mkdir()
        (root / folder / "__init__.py").touch()
    (root / "src" / "staticfire").mkdir(parents=True)
    (root / "src" / "staticfire" / "__init__.py").write_text('__version__ = "0"\n')
    for name, source in sources.items():
        path = root.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        for parent in path.relative_to(root).parents:
            if parent.parts:
                (root / parent / "__init__.py").touch()
        path.write_text(source)
    return root


def test_this_repository_keeps_every_direction():
    assert layering.check(ROOT) == []


def test_the_checker_reads_every_python_file_of_the_package():
    known = set(layering.Tree(ROOT).files.values())
    package = {path for folder in layering.FOLDERS for path in (ROOT / folder).rglob("*.py")}
    package |= set((ROOT / "src" / "staticfire").glob("*.py"))
    assert known == package
    assert len(known) > 30


def test_a_correct_tree_has_no_violation(tmp_path):
    root = plant(
        tmp_path,
        kernels__op="import torch\n",
        engine__layers="from staticfire.kernels.op import torch\nfrom staticfire import __version__\n",
        engine__config__model="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n",
        harness__run__worker="from staticfire.engine import layers\n",
        harness__cli__explain="from staticfire.engine.config import model\n",
        harness__cli__run="def run():\n    from staticfire.harness.run import worker\n",
    )
    assert layering.check(root) == []


DIRECTIONS = {
    "kernels import engine": (
        "kernels__op",
        "from staticfire.engine import request\n",
        "kernels may not import engine",
    ),
    "engine imports harness": ("engine__llm", "import staticfire.harness.run\n", "engine may not import harness.run"),
    "engine reads matrices": (
        "engine__llm",
        "from importlib.resources import files\ndata = files('staticfire.matrices')\n",
        "engine may not import matrices",
    ),
    "lazily": ("engine__llm", "def f():\n    from staticfire.harness import run\n", "engine may not import harness"),
    "relatively": ("kernels__op", "from ..engine import request\n", "kernels may not import engine"),
    "by a dotted string": ("kernels__op", "X = 'staticfire.engine.llm:LLM'\n", "kernels may not import engine.llm"),
    "report reaches engine": (
        "harness__report__json",
        "from staticfire.engine.request import Request\n",
        "harness may not import engine.request",
    ),
    "cli reaches past engine.config": (
        "harness__cli__explain",
        "from staticfire.engine.llm import LLM\n",
        "harness.cli may not import engine.llm",
    ),
    "someone imports the cli": (
        "harness__run__worker",
        "from staticfire.harness.cli import main\n",
        "only __main__ may import harness.cli",
    ),
    "a bare name": (
        "engine__llm",
        "from kernels.op import f\n",
        "bare import of kernels.op, write staticfire.kernels.op",
    ),
}


@pytest.mark.parametrize(("file", "source", "reason"), DIRECTIONS.values(), ids=DIRECTIONS.keys())
def test_a_wrong_direction_is_reported_with_its_line(tmp_path, file, source, reason):
    root = plant(tmp_path, **{file: "# first line\n" + source})
    (fault,) = layering.check(root)
    place = file.replace("__", "/") + ".py"
    number = 1 + len(source.splitlines())
    assert fault.startswith(f"{place}:{number}: {reason}")
    assert fault.endswith(source.splitlines()[-1].strip())


def test_torch_in_a_light_module_is_reported(tmp_path):
    root = plant(tmp_path, engine__cache__pool="import os\nimport torch.nn as nn\n")
    (fault,) = layering.check(root)
    assert fault.startswith("engine/cache/pool.py:2: engine.cache.pool must stay light")
    assert fault.endswith("import torch.nn as nn")


def test_torch_reached_through_other_modules_is_reported_with_the_chain(tmp_path):
    root = plant(
        tmp_path,
        engine__scheduler__queue="from staticfire.engine.helper import f\n",
        engine__helper="from staticfire.kernels.op import f\n",
        kernels__op="from torch import f\n",
    )
    (fault,) = layering.check(root)
    assert fault == (
        "kernels/op.py:1: engine.scheduler.queue must stay light but reaches it "
        "(engine.scheduler.queue -> engine.helper -> kernels.op -> torch): from torch import f"
    )


def test_torch_in_a_parent_package_is_reported(tmp_path):
    root = plant(tmp_path, engine__config__model="x = 1\n")
    (root / "engine" / "__init__.py").write_text("import torch\n")
    assert any(fault.startswith("engine/__init__.py:1: engine.config.model must") for fault in layering.check(root))


def test_torch_imported_late_in_a_light_module_is_reported(tmp_path):
    root = plant(tmp_path, engine__request="def f():\n    import torch\n")
    (fault,) = layering.check(root)
    assert fault == "engine/request.py:2: engine.request must stay light, even lazily: import torch"


def test_what_a_light_verb_imports_late_counts(tmp_path):
    root = plant(
        tmp_path,
        harness__cli__explain="def explain():\n    from staticfire.harness.models import make\n",
        harness__models__make="import transformers\n",
    )
    (fault,) = layering.check(root)
    assert fault.startswith("harness/models/make.py:1: harness.cli.explain must stay light")


def test_a_cycle_is_reported(tmp_path):
    root = plant(
        tmp_path,
        engine__a="from staticfire.engine.b import x\n",
        engine__b="from staticfire.engine.c import x\n",
        engine__c="from staticfire.engine import a\n",
    )
    (fault,) = layering.check(root)
    assert fault == (
        "engine/c.py:1: import cycle engine.a -> engine.b -> engine.c -> engine.a: from staticfire.engine import a"
    )


def test_every_listed_exception_is_in_use():
    lazy = {(found.importer, found.target.split(".")[0]) for found in layering.Tree(ROOT).imports if found.lazy}
    assert set(layering.LAZY) <= lazy


def test_a_listed_exception_holds_for_that_module_and_library_alone(tmp_path):
    late = "def f():\n    import huggingface_hub\n"
    root = plant(tmp_path, harness__cli__explain=late + "    import torch\n", harness__cli__matrix=late)
    assert [fault.split(" must")[0] for fault in layering.check(root)] == [
        "harness/cli/explain.py:3: harness.cli.explain",
        "harness/cli/matrix.py:2: harness.cli.matrix",
    ]
