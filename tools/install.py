"""Install the pinned dependencies and this package into the running interpreter's environment.

Called by `make` with the interpreter of `.venv`; uses the standard library and pip alone.

torch goes first and by itself. On Linux the default build brings several gigabytes of GPU libraries that
nothing here needs, so a CPU build (local version `+cpu`) is taken wherever pip's configured sources have
one, else from the index named by the variable TORCH_INDEX; only when neither has one is the default build
taken, and that is announced together with what it brings.
"""

import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
EXTRAS = "engine,pytest,buildkite,dev"
GPU_LIBRARIES = re.compile(r"(nvidia|cuda|triton|rocm|pytorch-triton)[\w-]*", re.IGNORECASE)


def say(message: str) -> None:
    """Print one line of progress at once, also when standard output is a pipe."""
    print(f"install: {message}", flush=True)


def pip(*arguments: str) -> int:
    """Run pip in this environment and return its exit status."""
    quiet = () if sys.stdout.isatty() else ("--quiet",)
    return subprocess.call([sys.executable, "-m", "pip", *arguments, *quiet], cwd=ROOT)


def pinned(name: str, constraints: str) -> str:
    """Return the version that `constraints` (the text of constraints.txt) pins for `name`.

    Raises:
        SystemExit: the file has no pin for it.
    """
    match = re.search(rf"^{re.escape(name)}==([^\s;]+)", constraints, re.MULTILINE | re.IGNORECASE)
    if match is None:
        sys.exit(f"install: {CONSTRAINTS.name} pins no version of {name}; add a line '{name}==VERSION'")
    return match[1]


def installed(name: str) -> str | None:
    """Return the installed version of a distribution, or None."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def resolve(requirement: str, *options: str) -> list[dict[str, object]] | None:
    """Ask pip what it would install for one requirement alone, downloading as little as it can.

    Returns:
        The `install` entries of pip's report, or None when its sources have nothing that fits.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps", "--quiet"]
        done = subprocess.run(
            [*command, "--report", str(report), *options, requirement], capture_output=True, check=False
        )
        if done.returncode != 0 or not report.exists():
            return None
        entries: list[dict[str, object]] = json.loads(report.read_text(encoding="utf-8"))["install"]
        return entries


def gpu_libraries(requires: Sequence[str]) -> list[str]:
    """Pick the requirements of a torch build that exist only for GPUs.

    Args:
        requires: `Requires-Dist` lines, such as `nvidia-nccl-cu13==2.29.7; platform_system == "Linux"`.

    Returns:
        Their distribution names, in order, without those that only an extra asks for.
    """
    names = [re.split(r"[\s;\[=<>!~(]", line, maxsplit=1)[0] for line in requires if "extra ==" not in line]
    return [name for name in names if GPU_LIBRARIES.fullmatch(name)]


def choose_torch(version: str, system: str, torch_index: str | None) -> tuple[str, list[str], list[str]]:
    """Decide which build of torch to install.

    Args:
        version: the pinned version without a local part, such as `2.13.0`.
        system: `platform.system()`: only on Linux do the builds differ.
        torch_index: the user's index of CPU builds, if any.

    Returns:
        The requirement, pip options to find it with, and the names of the GPU libraries that it brings.

    Raises:
        SystemExit: no source has that version.
    """
    plain, cpu = f"torch=={version}", f"torch=={version}+cpu"
    index = ["--index-url", torch_index] if torch_index else []
    attempts: list[tuple[str, list[str]]] = [(cpu, [])] if system == "Linux" else []
    attempts += [(cpu, index), (plain, index)] if torch_index else [(plain, [])]
    for requirement, options in attempts:
        found = resolve(requirement, *options)
        if found:
            metadata = found[0].get("metadata")
            requires = metadata.get("requires_dist", []) if isinstance(metadata, dict) else []
            return requirement, options, gpu_libraries(requires) if system == "Linux" else []
    where = f"TORCH_INDEX={torch_index}" if torch_index else "pip's configured sources"
    sys.exit(f"install: no torch {version} for this Python and platform in {where}; see `pip index versions torch`")


def install_torch(constraints: str) -> str:
    """Install the pinned torch unless it is there already; return the constraints that hold for the rest."""
    version = pinned("torch", constraints)
    present = installed("torch")
    if present is not None and present.partition("+")[0] == version:
        say(f"torch {present} is there already")
        requires = importlib.metadata.requires("torch") or []
        return free_triton(constraints) if gpu_libraries(requires) else constraints
    requirement, options, gpu = choose_torch(version, platform.system(), os.environ.get("TORCH_INDEX"))
    if gpu:
        say(f"NOTICE: no CPU build of torch {version} was found for this platform.")
        say(f"NOTICE: the default build follows. It also downloads {len(gpu)} GPU libraries, gigabytes in all:")
        say(f"NOTICE:   {', '.join(gpu)}")
        say("NOTICE: to avoid that, stop now and set TORCH_INDEX to an index of CPU builds (README, 'Which torch').")
        constraints = free_triton(constraints)
    say(f"installing {requirement}")
    if options and pip("install", "--no-deps", *options, requirement) != 0:
        sys.exit(f"install: pip could not install {requirement} from TORCH_INDEX; its message is above")
    constrained(constraints, [requirement])
    return constraints


def free_triton(constraints: str) -> str:
    """Drop the pin of triton, for a GPU build of torch requires a triton version of its own."""
    return re.sub(r"^triton==.*\n", "", constraints, flags=re.MULTILINE)


def constrained(constraints: str, arguments: Sequence[str]) -> None:
    """Run `pip install` under the given constraints text.

    Raises:
        SystemExit: pip failed; its own message has been shown.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "constraints.txt")
        file.write_text(constraints, encoding="utf-8")
        if pip("install", "--constraint", str(file), *arguments) != 0:
            sys.exit("install: pip failed; its message is above. A second `make` goes on where this one stopped.")


def main() -> None:
    """Install torch, then the build backend, then everything else with the package itself editable."""
    constraints = CONSTRAINTS.read_text(encoding="utf-8")
    constraints = install_torch(constraints)
    say("installing the other pinned dependencies and staticfire itself (editable)")
    constrained(constraints, ["setuptools"])
    # Without build isolation the build backend is the pinned one too.
    constrained(constraints, ["--no-build-isolation", "--editable", f".[{EXTRAS}]"])


if __name__ == "__main__":
    main()
