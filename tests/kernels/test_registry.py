"""What every public op has: all backends, a parity test, variants, a cost, a tolerance; test_bench.py has the rest."""

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

from staticfire import kernels
from staticfire.kernels.dispatch import Registry
from staticfire.kernels.registry import OPS
from staticfire.kernels.roofline import CEILINGS, parameters
from staticfire.kernels.targets import TARGETS
from staticfire.kernels.tolerances import TOLERANCES
from staticfire.kernels.variant import ITEM, Cost

pytestmark = pytest.mark.engine
PARITY = Path(__file__).parent / "parity"


def folders():
    """Folders of ops: those with a reference."""
    root = Path(kernels.__path__[0])
    names = [module.name for module in pkgutil.iter_modules([str(root)]) if module.ispkg]
    return [name for name in names if (root / name / "reference.py").exists()]


def public_ops():
    """Every public function that dispatches to a backend, by folder."""
    for folder in folders():
        module = importlib.import_module(f"staticfire.kernels.{folder}")
        for name in module.__all__:
            function = getattr(module, name)
            if inspect.isfunction(function) and "backend" in inspect.signature(function).parameters:
                yield folder, name


def called_with_triton(path):
    """Names that a test module uses, if it asks for the backend "triton" at all."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    if not any(isinstance(node, ast.Constant) and node.value == "triton" for node in nodes):
        return set()
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return attributes | {node.id for node in nodes if isinstance(node, ast.Name)}


def test_the_registry_lists_every_public_op_and_no_other():
    assert {op.name: op.folder for op in OPS.values()} == {name: folder for folder, name in public_ops()}


@pytest.mark.parametrize("op", OPS.values(), ids=lambda op: op.name)
class TestEveryOp:
    def test_has_one_signature_in_every_backend(self, op):
        public = [name for name in inspect.signature(op.public).parameters if name != "backend"]
        for part in ("reference", "torch", "triton"):
            assert list(inspect.signature(op.part(part)).parameters) == public, part

    def test_offers_all_three_backends(self, op):
        module = importlib.import_module(f"staticfire.kernels.{op.folder}")
        tables = {table.op: table for table in vars(module).values() if isinstance(table, Registry)}
        assert [tables[op.name][backend] for backend in ("reference", "torch", "triton")] == [
            op.part("reference"),
            op.part("torch"),
            op.part("triton"),
        ]

    def test_has_a_parity_test(self, op):
        named = [path.name for path in sorted(PARITY.glob("test_*.py")) if op.name in called_with_triton(path)]
        assert named, f"no module of tests/kernels/parity calls {op.name} on the backend triton"

    @pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)
    def test_is_compiled_for_every_target(self, op, target):
        variants = op.variants(target)
        names = [variant.name for variant in variants]
        assert names
        assert len(set(names)) == len(names)
        assert names == [variant.name for variant in op.variants(TARGETS["sm_80"])]
        assert any(name.startswith("bf16") for name in names)

    def test_has_variants_that_name_arguments_once(self, op):
        for variant in op.variants(TARGETS["sm_90"]):
            assert not set(variant.signature) & set(variant.constexprs)
            assert variant.kernel.startswith(f"staticfire.kernels.{op.folder}.triton:")
            assert variant.num_warps & (variant.num_warps - 1) == 0

    def test_costs_more_for_more(self, op):
        takes = parameters(op.cost)
        assert all(one.kind is inspect.Parameter.KEYWORD_ONLY for one in takes.values())
        numbers = {name: 64 for name, one in takes.items() if one.annotation is int and one.default is one.empty}
        small, large = op.cost(**numbers), op.cost(**dict.fromkeys(numbers, 128))
        assert isinstance(small, Cost)
        assert small.unit in ITEM
        assert 0 < small.read < large.read
        assert 0 < small.written < large.written
        assert 0 <= small.operations <= large.operations

    def test_has_a_tolerance(self, op):
        assert any(name == op.name for name, _ in TOLERANCES)


def test_ceilings_are_of_devices_that_matrices_know():
    from staticfire.harness.models import devices

    assert {name for name in devices.names() if devices.find(name).type != "cpu"} == set(CEILINGS)
    assert all(one.target is None or one.target in TARGETS for one in CEILINGS.values())
