"""Every op has the same shape: a folder, a reference, a quick path, one public signature, a row, a test."""

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NO_OPS = {"bench", "budgets"}
OPS = sorted({path.parent.name for path in (ROOT / "kernels").glob("*/__init__.py")} - NO_OPS)


def public_ops(name):
    package = importlib.import_module(f"staticfire.kernels.{name}")
    members = ((n, getattr(package, n)) for n in package.__all__)
    return {n: f for n, f in members if inspect.isfunction(f) and "backend" in inspect.signature(f).parameters}


def test_there_are_ops():
    assert len(OPS) >= 11


@pytest.mark.engine
@pytest.mark.parametrize("name", OPS)
def test_an_op_has_every_part(name):
    folder = ROOT / "kernels" / name
    for part in ("reference.py", "torch.py"):
        assert (folder / part).is_file(), f"kernels/{name}/{part} is missing"
    test = ROOT / "tests" / "kernels" / f"test_{name}.py"
    assert "backend=" in test.read_text(encoding="utf-8"), f"{test} does not compare backends"


@pytest.mark.engine
@pytest.mark.parametrize("name", OPS)
def test_backends_share_one_signature(name):
    functions = public_ops(name)
    assert functions
    for op, function in functions.items():
        public = inspect.signature(function)
        assert public.parameters["backend"].default == "torch"
        wanted = [p for p in public.parameters if p != "backend"]
        for backend in ("torch", "reference"):
            implementation = getattr(importlib.import_module(f"staticfire.kernels.{name}.{backend}"), op)
            signature = inspect.signature(implementation)
            assert list(signature.parameters) == wanted, f"{op}: {backend} takes other arguments"
            assert signature.return_annotation == public.return_annotation, f"{op}: {backend} returns something else"


@pytest.mark.engine
@pytest.mark.parametrize("name", OPS)
def test_reference_states_its_formula_and_source(name):
    reference = importlib.import_module(f"staticfire.kernels.{name}.reference")
    assert reference.__doc__
    assert len(reference.__doc__.split("\n")) >= 3


@pytest.mark.engine
def test_the_tolerance_table_holds_exactly_the_ops():
    from staticfire.kernels.tolerances import DTYPES, TOLERANCES

    ops = {op for name in OPS for op in public_ops(name)}
    assert {op for op, _ in TOLERANCES} == ops
    assert set(TOLERANCES) == {(op, dtype) for op in ops for dtype in DTYPES}


@pytest.mark.engine
@pytest.mark.parametrize("name", OPS)
def test_an_unknown_backend_is_refused_by_name(name):
    for op, function in public_ops(name).items():
        registries = [
            value
            for value in vars(importlib.import_module(f"staticfire.kernels.{name}")).values()
            if getattr(value, "op", None) == op
        ]
        assert len(registries) == 1, f"{op}: no registry, or several"
        with pytest.raises(ValueError, match=rf"{op}: unknown backend 'tosch'.*did you mean 'torch'"):
            registries[0]["tosch"]
        assert "backend" in inspect.signature(function).parameters


def test_the_package_and_its_dispatch_import_no_torch():
    code = "import sys, staticfire.kernels, staticfire.kernels.dispatch; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
