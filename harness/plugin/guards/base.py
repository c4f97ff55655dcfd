"""What guards have in common: how a test is excused, and how a fault is told."""

from typing import Final, NoReturn

import pytest

PREFIX: Final = "staticfire guard"


def excused(item: pytest.Item, guard: str) -> bool:
    """Whether `@pytest.mark.sf_allow(guard, reason=…)` leaves the test alone.

    Raises:
        pytest.UsageError: A marker names no guard or gives no reason.
    """
    from staticfire.harness.errors import nearest  # noqa: PLC0415 -- only where the marker is used
    from staticfire.harness.plugin.options import GUARDS  # noqa: PLC0415 -- the same

    found = False
    for mark in item.iter_markers("sf_allow"):
        reason = mark.kwargs.get("reason")
        unknown = [name for name in mark.args if name not in GUARDS]
        if unknown or not mark.args:
            near = nearest(str(unknown[0]), GUARDS) if unknown else ""
            raise pytest.UsageError(
                f"{item.nodeid}: sf_allow{mark.args!r}: no such guard.{near} Guards: {', '.join(GUARDS)}."
            )
        if not isinstance(reason, str) or not reason.strip() or set(mark.kwargs) != {"reason"}:
            raise pytest.UsageError(f"{item.nodeid}: sf_allow needs reason='…', and nothing else, got {mark.kwargs!r}")
        found = found or guard in mark.args
    return found


def fail(guard: str, message: str, unless: str = "if that is meant") -> NoReturn:
    """Fail the running test, and say how to be excused.

    Raises:
        pytest.fail.Exception: Always.
    """
    pytest.fail(
        f'{PREFIX} {guard}: {message}\n({unless}, mark it @pytest.mark.sf_allow("{guard}", reason="…"))', pytrace=False
    )
