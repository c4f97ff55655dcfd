"""Skips with a typed reason: a device, a package or a version that is not here. Nothing else excuses a cell."""

import importlib.metadata
import importlib.util
from typing import Any, Final, Literal

import pytest
from _pytest.outcomes import Skipped  # `pytest.skip.Exception` under the name that type checkers know

Kind = Literal["device", "package", "version"]
KEYS: Final[tuple[Kind, ...]] = ("device", "package", "version")
DEVICES: Final = ("cpu", "cuda", "rocm")


class TypedSkip(Skipped):
    """A skip that says which kind of thing is missing.

    Attributes:
        kind: `device`, `package` or `version`.
    """

    def __init__(self, kind: Kind, reason: str, *, allow_module_level: bool = False) -> None:
        super().__init__(f"{kind}: {reason}", allow_module_level=allow_module_level)
        self.kind = kind


class RequiresPlugin:
    """Asks before each test; registered where some test has the marker."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Skip what needs something that is not here."""
        check(item)


def check(item: pytest.Item) -> None:
    """Skip the test if one of its `requires` markers is not met.

    Raises:
        TypedSkip: Something is not here.
        pytest.UsageError: A marker cannot be read.
    """
    for mark in item.iter_markers("requires"):
        faults = _faults(mark)
        if faults:
            raise pytest.UsageError("\n".join(f"{item.nodeid}: {fault}" for fault in faults))
        for kind in KEYS:
            missing = _missing(kind, str(mark.kwargs[kind])) if kind in mark.kwargs else None
            if missing is not None:
                raise TypedSkip(kind, missing)


def _faults(mark: pytest.Mark) -> list[str]:
    from staticfire.harness.errors import nearest  # noqa: PLC0415 -- only for mistakes and once a test

    faults = [f"requires takes keywords only, got {value!r}" for value in mark.args]
    faults += [
        f"requires({key}=…): no such requirement.{nearest(key, KEYS)} Allowed: {', '.join(KEYS)}."
        for key in mark.kwargs
        if key not in KEYS
    ]
    if not mark.args and not mark.kwargs:
        faults.append(f"requires needs one of: {', '.join(KEYS)}")
    device = mark.kwargs.get("device")
    if device is not None and device not in DEVICES:
        faults.append(f"requires(device={device!r}): no such device. Allowed: {', '.join(DEVICES)}.")
    package = mark.kwargs.get("package")
    if package is not None and not (isinstance(package, str) and all(map(str.isidentifier, package.split(".")))):
        # a distribution's name is found by nobody, and the test would be skipped for good
        faults.append(f"requires(package={package!r}): must be a name that is imported, such as 'mamba_ssm'")
    version = mark.kwargs.get("version")
    if version is not None and not _is_requirement(version):
        faults.append(f"requires(version={version!r}): must be a package and a range, such as 'transformers>=4.56'")
    return faults


def _missing(kind: str, wanted: str) -> str | None:
    if kind == "device":
        return None if wanted in ("cpu", device()) else f"no {wanted} device"
    if kind == "package":
        return None if _is_here(wanted) else f"{wanted} is not installed"
    return version_fault(wanted)


def _is_here(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # of the package that it is said to be in
        return False


def device() -> str:
    """The kind of device that torch sees here; `cpu` without torch."""
    if importlib.util.find_spec("torch") is None:
        return "cpu"
    import torch  # noqa: PLC0415 -- only for tests that ask for a device

    if not torch.cuda.is_available():
        return "cpu"
    return "rocm" if torch.version.hip else "cuda"


def version_fault(requirement: str) -> str | None:
    """What is wrong with the installed version; None if `package>=1,<2` is met.

    Raises:
        ValueError: It is no requirement.
    """
    from packaging.requirements import Requirement  # noqa: PLC0415 -- comes with pytest

    parsed = Requirement(requirement)
    try:
        found = importlib.metadata.version(parsed.name)
    except importlib.metadata.PackageNotFoundError:
        return f"{parsed.name} is not installed, {requirement} is needed"
    return None if parsed.specifier.contains(found, prereleases=True) else f"{requirement} is needed, {found} is here"


def _is_requirement(value: Any) -> bool:
    from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415 -- comes with pytest

    try:
        return isinstance(value, str) and bool(Requirement(value).specifier)
    except InvalidRequirement:
        return False
