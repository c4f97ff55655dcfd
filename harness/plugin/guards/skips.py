"""Skips need a typed reason, and never come out of a body."""

import unittest
from collections.abc import Generator
from typing import Any, Final

import pytest

from staticfire.harness.plugin.guards.base import excused, fail
from staticfire.harness.plugin.skips import TypedSkip

NAME: Final = "skips"


class SkipsGuard:
    """Fails tests that skip themselves while they run."""

    def __init__(self, config: pytest.Config) -> None:
        """Nothing of the configuration is needed."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Let typed skips through."""
        try:
            return (yield)
        except (pytest.skip.Exception, unittest.SkipTest) as skipped:
            if isinstance(skipped, TypedSkip) or excused(item, NAME):
                raise
            told = f"the body skipped itself ({skipped})"
        fail(
            NAME,
            f"{told}; a mark tells it before the test begins: @pytest.mark.requires(package=…, version=… or device=…), "
            "or skipif",
        )
