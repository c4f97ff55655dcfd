"""Where a model's configuration comes from: a folder of configurations, our own files, the local Hugging Face cache.

Nothing is downloaded. Whatever is found is put into a folder that holds one `config.json`, for that is what engines
are pointed at.
"""

import hashlib
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from staticfire.harness.errors import InputError
from staticfire.harness.files import default_cache_dir, read_regular
from staticfire.harness.models import catalog

Source = Literal["folder", "model-configs", "matrices", "huggingface-cache", "architecture"]

# An id of the Hub: `owner/name`, or a name alone.
_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
_BESIDE: Final = ("generation_config.json", "hf_quant_config.json", "preprocessor_config.json")


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model whose configuration is at hand.

    Attributes:
        path: A folder with a `config.json`.
        source: Where it was found.
        certain: Whether it is the model's own; False for the default configuration of its architecture, on whose
            sizes nothing certain can rest.
        architecture: The first architecture that it names, if it names any.
    """

    path: Path
    source: Source
    certain: bool
    architecture: str | None


class BrokenModelError(InputError):
    """A configuration was found, and it cannot be used.

    Attributes:
        named: Whether it lies where the user said that configurations are.
        fault: The file, and what is wrong with it.
    """

    def __init__(self, path: Path, why: str, source: Source) -> None:
        """Name the file and say why."""
        self.named = source == "model-configs"
        self.fault = f"{path}: {why}"
        super().__init__(f"--model-configs: {self.fault}." if self.named else f"{self.fault}.")


class ModelSource:
    """Finds configurations by name, path or id."""

    def __init__(self, model_configs: Path | None = None, *, folder: Path | None = None) -> None:
        """Look in these places.

        Args:
            model_configs: A user's folder: `OWNER/NAME/config.json`, `OWNER/NAME.json`, `OWNER--NAME.json` or
                `NAME.json`.
            folder: Where folders are made, by default in the cache folder.

        Raises:
            InputError: `model_configs` is no folder.
        """
        if model_configs is not None and not model_configs.is_dir():
            raise InputError(f"--model-configs {model_configs}: is not a folder.")
        self._configs = model_configs
        self._folder = folder or default_cache_dir() / "probe" / "models"

    @property
    def folder(self) -> Path:
        """Where folders are made."""
        return self._folder

    def find(self, model: str) -> ModelFolder | None:
        """Find a model's configuration.

        Args:
            model: A path, a name of `matrices/models/` or a Hugging Face id.

        Returns:
            None if no configuration is at hand.

        Raises:
            BrokenModelError: What was found is not a configuration, or cannot be read.
        """
        path = Path(model)
        if path.is_absolute() and path.is_dir():
            return self._given(path, "folder") if _is_there(path / "config.json") else None
        if not _ID.fullmatch(model) or ".." in model:
            return None
        return self._from_configs(model) or self._from_catalog(model) or self._from_hub(model)

    def look_up(self, models: Iterable[str]) -> tuple[dict[str, ModelFolder | None], dict[str, str]]:
        """Find the configurations of several models.

        Args:
            models: As for `find`.

        Returns:
            Model -> what was found, and model -> what is wrong with its configuration.

        Raises:
            InputError: Configurations that lie in the user's folder cannot be used; all of them at once.
        """
        found: dict[str, ModelFolder | None] = {}
        broken: dict[str, str] = {}
        named: list[str] = []
        for model in dict.fromkeys(models):
            try:
                found[model] = self.find(model)
            except BrokenModelError as error:
                found[model] = None
                broken[model] = error.fault
                named += [str(error)] if error.named else []
        if named:
            raise InputError("\n".join(dict.fromkeys(named)))
        return found, broken

    def stand_in(
        self, architecture: str, make: Callable[[str, int], Mapping[str, Any] | str], *, sizes: int = 1
    ) -> ModelFolder | str:
        """Make a folder for an architecture of which nothing but the name is known.

        Args:
            architecture: A class name, such as `JambaForCausalLM`.
            make: Makes its default configuration, or says why it cannot; `VllmProbe.default_config` is one.
            sizes: 1 for the default sizes, 2 for others: an answer that differs between them depends on sizes.

        Returns:
            The folder, or why there is none.
        """
        config = make(architecture, sizes)
        return config if isinstance(config, str) else self.put(config, "architecture", certain=False)

    def put(self, config: Mapping[str, Any], source: Source, *, certain: bool = True) -> ModelFolder:
        """Write a configuration into a folder of its own, named after its content."""
        return self._write({"config.json": json.dumps(config, sort_keys=True, indent=1).encode()}, source, certain)

    def _from_configs(self, model: str) -> ModelFolder | None:
        if self._configs is None:
            return None
        flat, name = model.replace("/", "--"), model.rpartition("/")[2]
        for where in dict.fromkeys((model, flat, name)):
            for path in (self._configs / where / "config.json", self._configs / f"{where}.json"):
                if _is_there(path):
                    return self._given(path.parent if path.name == "config.json" else path, "model-configs")
        return None

    def _from_catalog(self, model: str) -> ModelFolder | None:
        if model not in catalog.names():
            return None
        return self.put(catalog.load(model).config, "matrices")

    def _from_hub(self, model: str) -> ModelFolder | None:
        """The newest snapshot in the local cache of the Hub that has a configuration."""
        where = hub_folder() / f"models--{model.replace('/', '--')}"
        try:
            revision = (where / "refs" / "main").read_text(encoding="utf-8").strip()
            snapshots = [where / "snapshots" / revision]
        except OSError:
            snapshots = []
        if not snapshots or not (snapshots[0] / "config.json").is_file():
            found = [path.parent for path in (where / "snapshots").glob("*/config.json")]
            snapshots = sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)
        return self._given(snapshots[0], "huggingface-cache") if snapshots else None

    def _given(self, path: Path, source: Source) -> ModelFolder:
        """Copy what an engine reads of a model, and no weights, code or tokenizer."""
        config = path if path.suffix == ".json" else path / "config.json"
        try:
            files = {"config.json": read_regular(config, follow=True)}
            if config is not path:
                files |= {name: (path / name).read_bytes() for name in _BESIDE if (path / name).is_file()}
        except OSError as error:
            raise BrokenModelError(config, _unreadable(config, error), source) from error
        return self._write(files, source, certain=True, where=config)

    def _write(
        self, files: Mapping[str, bytes], source: Source, certain: bool, where: Path | None = None
    ) -> ModelFolder:
        where = where or Path("config.json")
        try:
            config = json.loads(files["config.json"])
        except (ValueError, RecursionError) as error:
            raise BrokenModelError(where, f"is not JSON: {str(error) or type(error).__name__}", source) from error
        if fault := _fault(config):
            raise BrokenModelError(where, fault, source)
        digest = hashlib.sha256()
        for name, data in sorted(files.items()):
            digest.update(name.encode() + b"\0" + hashlib.sha256(data).digest())
        target = self._folder / digest.hexdigest()[:24]
        if not (target / "config.json").is_file():
            target.mkdir(parents=True, exist_ok=True)
            for name, data in sorted(files.items(), reverse=True):
                scratch = target / f".{name}.{os.getpid()}.{threading.get_ident()}"
                scratch.write_bytes(data)
                scratch.replace(target / name)
        return ModelFolder(target, source, certain, architecture_of(config))


def _is_there(path: Path) -> bool:
    """Whether something has that name, readable or not."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # in a folder that may not be entered: reading it says why
    return True


def _unreadable(path: Path, error: OSError) -> str:
    if isinstance(error, IsADirectoryError):
        return "is a folder, not a file"
    if isinstance(error, FileNotFoundError) and path.is_symlink():
        return f"is a link to {path.readlink()}, which is not there"
    return f"cannot be read: {error.strerror or error}"


def _fault(config: object) -> str:
    """What is wrong with a configuration whatever the model is; empty if nothing."""
    if not isinstance(config, dict):
        return f"must be a JSON object, got {type(config).__name__}"
    names = config.get("architectures")
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        return f"architectures must be a list of names, got {json.dumps(names)[:80]}"
    kind = config.get("model_type")
    if kind is not None and not isinstance(kind, str):
        return f"model_type must be a name, got {json.dumps(kind)[:80]}"
    return ""


def architecture_of(config: Mapping[str, Any]) -> str | None:
    """The first architecture that a configuration names."""
    names = config.get("architectures")
    return str(names[0]) if isinstance(names, list) and names else None


def hub_folder() -> Path:
    """Where the Hub's client keeps its cache; the same variables decide."""
    if cache := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(cache)
    home = os.environ.get("HF_HOME")
    if home is None:
        home = str(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "huggingface")
    return Path(home) / "hub"
