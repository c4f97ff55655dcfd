"""Make environments in which vLLM can be asked about configurations on a machine without a GPU.

    python tools/vllm_envs.py [--wheels DIR] [--sources] [VERSION ...]

One virtual environment holds what vLLM imports (its own requirements without the GPU libraries, and a CPU build of
torch); each version of vLLM lies in a folder of its own beside it, as its ordinary wheel. `python-VERSION` is a small
script that starts the environment's interpreter with that folder on its path; its path is printed last. Everything
is named after what decides its content, so a second run finds all of it and does nothing.

With --sources, the tests, examples, benchmarks, recipes and pipelines of each release are unpacked beside it from its
source distribution, to be read by `staticfire check`; nothing of them is built or run.

The folder is $STATICFIRE_VLLM_ENVS, by default ~/.cache/staticfire/vllm. Uses the standard library and pip alone.
"""

import argparse
import fcntl
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from email.parser import HeaderParser
from pathlib import Path, PurePosixPath

sys.path.insert(0, str(Path(__file__).resolve().parent))
import install

VERSIONS = ("0.27.1", "0.28.0", "0.33.0")
TORCH = "2.13.0"
# What of a source distribution is read.
SOURCES = ("tests", "examples", "benchmarks", "recipes", ".buildkite")
# Without these, pip cannot make a source distribution's metadata, and then it does not download it either.
BUILD_TOOLS = ("setuptools<81", "setuptools_scm", "setuptools-rust", "wheel", "packaging", "jinja2")
# What only a GPU can run, or only drives one; none of it is imported where a configuration is judged.
GPU_ONLY = re.compile(
    r"torch|torchaudio|torchvision|torchcodec|pynvvideocodec|flashinfer-.*|apache-tvm-ffi|tilelang|nvidia-.*|nvtx|"
    r"fastsafetensors|instanttensor|quack-kernels|tokenspeed-.*|humming-kernels|fastokens|triton-.*|deep[-_]?gemm.*"
)


def root() -> Path:
    """The folder of all environments."""
    return Path(os.environ.get("STATICFIRE_VLLM_ENVS") or Path.home() / ".cache" / "staticfire" / "vllm")


def requirements(metadata: str) -> dict[str, str]:
    """Pick from a wheel's METADATA what is needed without a GPU.

    Returns:
        Normalised distribution name -> requirement line, without the requirements of extras. A name that occurs
        more than once (under different markers) keeps all its lines, joined by newlines.
    """
    found: dict[str, list[str]] = {}
    for line in HeaderParser().parsestr(metadata).get_all("Requires-Dist") or []:
        if re.search(r"\bextra\s*==", line):
            continue
        name = re.sub(r"[-_.]+", "-", re.split(r"[\s;\[=<>!~(]", line, maxsplit=1)[0]).lower()
        if not GPU_ONLY.fullmatch(name):
            found.setdefault(name, []).append(line)
    return {name: "\n".join(lines) for name, lines in found.items()}


def merged(each: Iterable[dict[str, str]]) -> str:
    """Join the requirements of several versions, oldest first: the newest says which release of a distribution."""
    lines: dict[str, str] = {}
    for one in each:
        lines |= one
    return "".join(f"{lines[name]}\n" for name in sorted(lines))


def pip(python: Path | str, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
    """Run pip of an interpreter.

    Raises:
        SystemExit: It failed; its own message has been shown.
    """
    command = [str(python), "-m", "pip", *arguments, "--quiet", "--disable-pip-version-check"]
    if subprocess.call(command, env={**os.environ, **(environment or {})}) != 0:
        sys.exit("vllm_envs: pip failed; its message is above")


def find_wheel(version: str, wheels: Path) -> Path | None:
    """A wheel of vLLM that lies in a folder."""
    return next(iter(sorted(wheels.glob(f"vllm-{version}-*.whl"))), None)


def make_package(version: str, folder: Path, given: Path | None) -> Path:
    """Put one version's own package into its folder, without any dependency; return that folder."""
    target = folder / f"vllm-{version}"
    if target.exists():
        return target
    wheels = folder / "wheels"
    wheel = (find_wheel(version, given) if given else None) or find_wheel(version, wheels)
    if wheel is None:
        print(f"vllm_envs: downloading vllm {version}", flush=True)
        pip(sys.executable, "download", "--no-deps", "--only-binary=:all:", "--dest", str(wheels), f"vllm=={version}")
        wheel = find_wheel(version, wheels)
        if wheel is None:
            sys.exit(f"vllm_envs: pip downloaded no wheel of vllm {version}")
    print(f"vllm_envs: unpacking {wheel.name}", flush=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        pip(sys.executable, "install", "--no-deps", "--no-compile", "--target", f"{scratch}/package", str(wheel))
        Path(scratch, "package").rename(target)
    if wheel.parent == wheels:
        wheel.unlink()
    return target


def make_dependencies(wanted: str, folder: Path) -> Path:
    """Make the environment of the dependencies; return its interpreter."""
    options = subprocess.run(
        [sys.executable, "-m", "pip", "--version"], capture_output=True, text=True, check=False
    ).stdout.rpartition("(")[2]
    key = hashlib.sha256(f"{wanted}\n{TORCH}\n{options}".encode()).hexdigest()[:12]
    target = folder / f"dependencies-{key}"
    python = target / "bin" / "python"
    if (target / ".complete").exists():
        return python
    print(f"vllm_envs: making {target.name}: {len(wanted.splitlines())} requirements and torch {TORCH}", flush=True)
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(target)], check=True)
    torch, index, gpu = install.choose_torch(TORCH, sys.platform.capitalize(), os.environ.get("TORCH_INDEX"))
    if gpu:
        print(f"vllm_envs: NOTICE: no CPU build of torch {TORCH} was found; the default build brings gigabytes")
    pip(python, "install", *index, torch)
    with tempfile.TemporaryDirectory() as scratch:
        file, pins = Path(scratch, "requirements.txt"), Path(scratch, "constraints.txt")
        file.write_text(f"{wanted}triton\n", encoding="utf-8")
        pins.write_text(f"{torch}\n", encoding="utf-8")
        pip(python, "install", "--requirement", str(file), "--constraint", str(pins))
    (target / ".complete").touch()
    return python


def write_wrapper(version: str, folder: Path, package: Path, python: Path) -> Path:
    """Write the script that starts the interpreter with one version on its path; return it."""
    script = folder / f"python-{version}"
    text = f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(package))} exec {shlex.quote(str(python))} "$@"\n'
    if not script.exists() or script.read_text(encoding="utf-8") != text:
        script.write_text(text, encoding="utf-8")
        script.chmod(0o755)
    return script


def make(versions: Sequence[str], given: Path | None = None) -> dict[str, Path]:
    """Make whatever is missing.

    Args:
        versions: Releases of vLLM, such as `0.33.0`.
        given: A folder that may hold their wheels already.

    Returns:
        Version -> the script that runs Python with it.
    """
    folder = root().absolute()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:  # two makers at once would take each other's half-made folders
        fcntl.flock(lock, fcntl.LOCK_EX)
        packages = {version: make_package(version, folder, given) for version in versions}
        ordered = sorted(packages, key=lambda version: [int(part) for part in re.findall(r"\d+", version)])
        wanted = merged(requirements(installed_metadata(packages[version])) for version in ordered)
        python = make_dependencies(wanted, folder)
        return {version: write_wrapper(version, folder, packages[version], python) for version in ordered}


def make_sources(versions: Sequence[str], given: Path | None = None) -> dict[str, Path]:
    """Unpack what is read of each release's source distribution, where it is not there yet.

    Args:
        versions: Releases of vLLM.
        given: Passed to `make`, whose environment is needed to download.

    Returns:
        Version -> the folder that holds `tests/` and the like.
    """
    missing = [version for version in versions if not (root().absolute() / f"source-{version}").exists()]
    interpreters = make(missing, given) if missing else {}
    folder = root().absolute()
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for version in missing:
            _make_source(version, folder, interpreters[version])
    return {version: folder / f"source-{version}" for version in versions}


def _make_source(version: str, folder: Path, python: Path) -> None:
    target = folder / f"source-{version}"
    if target.exists():
        return
    tools = folder / "build-tools"
    if not tools.exists():
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            pip(python, "install", "--target", f"{scratch}/tools", *BUILD_TOOLS)
            Path(scratch, "tools").rename(tools)
    print(f"vllm_envs: downloading the source distribution of vllm {version}", flush=True)
    # pip asks a source distribution for its metadata before it keeps it; these variables let vLLM's set-up answer
    # without a compiler, with the version that was asked for.
    environment = {"VLLM_TARGET_DEVICE": "empty", "VLLM_VERSION_OVERRIDE": version, "PYTHONPATH": str(tools)}
    interpreter = shlex.split(python.read_text(encoding="utf-8").splitlines()[1])[2]
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        options = ("--no-deps", "--no-binary", "vllm", "--no-build-isolation", "--dest", scratch)
        pip(interpreter, "download", *options, f"vllm=={version}", environment=environment)
        with tarfile.open(next(Path(scratch).glob("vllm-*.tar.gz"))) as archive:
            wanted = [
                member
                for member in archive.getmembers()
                if PurePosixPath(member.name).parts[1:2] in [(name,) for name in SOURCES]
            ]
            archive.extractall(f"{scratch}/all", members=wanted, filter="data")
        next(Path(scratch, "all").iterdir()).rename(target)


def installed_metadata(package: Path) -> str:
    """The METADATA of the vLLM that lies in a folder."""
    return next(package.glob("vllm-*.dist-info/METADATA")).read_text(encoding="utf-8")


def main() -> None:
    """Make the environments that are named on the command line and print their interpreters."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=f"releases, by default {' '.join(VERSIONS)}")
    parser.add_argument("--wheels", type=Path, help="a folder that may hold wheels of vLLM already")
    parser.add_argument("--sources", action="store_true", help="also unpack tests and examples of each release")
    arguments = parser.parse_args()
    versions = arguments.versions or VERSIONS
    made = list(make(versions, arguments.wheels).values())
    if arguments.sources:
        made += make_sources(versions, arguments.wheels).values()
    for path in made:
        print(path)


if __name__ == "__main__":
    main()
