"""What a verdict depends on besides its cell: a journal made under another identity cannot be resumed."""

import hashlib
import importlib.metadata
import platform
from collections.abc import Iterable, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable

import msgspec

from staticfire import __version__

PACKAGES = ("kernels", "engine", "harness", "matrices")
SUFFIXES = (".py", ".json", ".toml", ".txt")
LIBRARIES = ("torch", "transformers", "triton", "safetensors", "tokenizers")


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Which matrix, judged by what and in which version.

    Attributes:
        matrix: Name of the matrix.
        digest: Digest of its content.
        job: The function that judges, `module:function`.
        content: Digest of this package's own sources and data: an edited kernel is another engine.
        kernel_backend: The backend that was asked for; None where each cell has its own.
        versions: Name -> version of this package, Python and the libraries that compute.
    """

    matrix: str
    digest: str
    job: str
    content: str
    versions: Mapping[str, str]
    kernel_backend: str | None = None

    def differences(self, other: "Identity") -> list[str]:
        """What differs, each as `what: mine, theirs`; empty when a resume is sound."""
        found = [
            f"{what}: {mine}, now {theirs}"
            for what, mine, theirs in (
                ("matrix", self.matrix, other.matrix),
                ("matrix digest", self.digest[:12], other.digest[:12]),
                ("job", self.job, other.job),
                ("content of the package", self.content[:12], other.content[:12]),
                ("--kernel-backend", self.kernel_backend or "none", other.kernel_backend or "none"),
            )
            if mine != theirs
        ]
        names = sorted({*self.versions, *other.versions})
        pairs = [(name, self.versions.get(name, "absent"), other.versions.get(name, "absent")) for name in names]
        return found + [f"{name}: {mine}, now {theirs}" for name, mine, theirs in pairs if mine != theirs]


def current_identity(matrix: str, digest: str, job: str, kernel_backend: str | None = None) -> Identity:
    """The identity of a run started now. Imports none of the libraries it names."""
    return Identity(
        matrix=matrix,
        digest=digest,
        job=job,
        content=content_digest(),
        versions=versions(),
        kernel_backend=kernel_backend,
    )


def versions() -> dict[str, str]:
    """Versions of what computes; what is not installed is left out."""
    found = {"staticfire": __version__, "python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def content_digest(packages: Iterable[str] = PACKAGES) -> str:
    """SHA-256 over names and contents of the package's sources and data, as installed."""
    digest = hashlib.sha256()
    for package in packages:
        _add(digest, files(f"staticfire.{package}"), package)
    return digest.hexdigest()


def _add(digest: "hashlib._Hash", folder: Traversable, name: str) -> None:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir() and entry.name != "__pycache__":
            _add(digest, entry, f"{name}/{entry.name}")
        elif entry.name.endswith(SUFFIXES):
            content = entry.read_bytes()
            digest.update(f"{name}/{entry.name}\0{len(content)}\0".encode())
            digest.update(content)
