"""What pytest loads: the options, the marker and the fixtures. Everything else is imported when it is first used.

A suite that uses none of it pays for this file alone, and nothing in its run is changed.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from staticfire.harness.plugin import options

if TYPE_CHECKING:
    from staticfire.harness.matrix.cell import Cell
    from staticfire.harness.plugin.hf_runner import HfRunner
    from staticfire.harness.plugin.runner import VllmRunner

MATRIX_MARKER = (
    "matrix(name, *, verdict=None, words=None, **axes): one test for each cell of a matrix, a file or a name of ours; "
    "axes are selected by value or pattern (staticfire)"
)
REQUIRES_MARKER = (
    "requires(*, device=None, package=None, version=None): skip, with a typed reason, where the device, package or "
    "version is missing (staticfire)"
)
ALLOW_MARKER = "sf_allow(guard, *, reason): leave this test to itself where a guard would fail it (staticfire)"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and the `ini` keys."""
    options.add(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Check the options, and load the parts that were asked for."""
    for marker in (MATRIX_MARKER, REQUIRES_MARKER, ALLOW_MARKER):
        config.addinivalue_line("markers", marker)
    options.configure(config)
    if hasattr(config, "workerinput") or config.getoption("dist", "no") != "no":
        from staticfire.harness.plugin import workers  # noqa: PLC0415 -- only under xdist

        workers.register(config)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Give the process back as it was found."""
    options.unconfigure(config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Turn cells of a matrix into parameters."""
    if metafunc.definition.get_closest_marker("matrix") is not None:
        from staticfire.harness.plugin import marker  # noqa: PLC0415 -- costs the matrix loader

        marker.parametrize(metafunc)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Look once for tests that need something; without any, nothing is asked before each test."""
    if any(item.get_closest_marker("requires") is not None for item in items):
        from staticfire.harness.plugin import skips  # noqa: PLC0415 -- only where it is used

        config.pluginmanager.register(skips.RequiresPlugin())


@pytest.fixture(scope="session")
def cell(request: pytest.FixtureRequest) -> "Cell":
    """The cell of the matrix that this test is about; `@pytest.mark.matrix` fills it."""
    return _given(request)


@pytest.fixture(scope="session")
def vllm_runner(request: pytest.FixtureRequest) -> "type[VllmRunner]":
    """The class that starts the engine under test (`--sf-engine`), with the keywords and defaults of vLLM's own."""
    from staticfire.harness.plugin import announce  # noqa: PLC0415 -- only where it is used
    from staticfire.harness.plugin.runner import VllmRunner  # noqa: PLC0415 -- only where it is used

    announce.register(request.config)
    return VllmRunner


@pytest.fixture(scope="session")
def hf_runner(request: pytest.FixtureRequest) -> "Iterator[type[HfRunner]]":
    """The class that runs transformers; a model stays loaded for the next test that asks for it."""
    from staticfire.harness.plugin import announce  # noqa: PLC0415 -- only where it is used
    from staticfire.harness.plugin.hf_runner import HfRunner, release  # noqa: PLC0415 -- only where it is used

    announce.register(request.config)
    yield HfRunner
    release()


@pytest.fixture(scope="session")
def cell_runner(request: pytest.FixtureRequest) -> "Callable[..., VllmRunner]":
    """Starts the engine under test as the cell says, and as a user would: no default of a test suite is added."""
    from staticfire.harness.plugin.runner import VllmRunner  # noqa: PLC0415 -- only where it is used

    cell = _given(request)

    def start(**changes: Any) -> "VllmRunner":
        return VllmRunner.of_cell(cell, **changes)

    return start


@pytest.fixture(scope="session")
def shared_setup(request: pytest.FixtureRequest) -> "Callable[..., Any]":
    """`shared_setup(name, start, stop)`: started once for all workers of a run, stopped after the last of them."""
    from staticfire.harness.plugin.workers import setups  # noqa: PLC0415 -- only where it is used

    return setups(request.config).get


@pytest.fixture(scope="session")
def example_prompts() -> list[str]:
    """Eight texts, from one word to a page, that fit into the runner's default of 1024 tokens with any tokenizer."""
    from staticfire.harness.plugin.models import example_texts  # noqa: PLC0415 -- only where it is used

    return example_texts()


def _given(request: pytest.FixtureRequest) -> "Cell":
    """The cell of the test that asks.

    Raises:
        pytest.UsageError: No marker gave it one.
    """
    if not hasattr(request, "param"):
        raise pytest.UsageError(f'the fixture {request.fixturename!r} needs the marker: @pytest.mark.matrix("hybrid")')
    given: Cell = request.param
    return given
