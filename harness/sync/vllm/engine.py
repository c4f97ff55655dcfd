"""vLLM, started for an audit by the interpreter that has it."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from staticfire.engine.view import View
from staticfire.harness import isolation
from staticfire.harness.errors import InputError
from staticfire.harness.models import catalog
from staticfire.harness.models.checkpoint import checkpoint
from staticfire.harness.sync.base import Merge, Road, Seen
from staticfire.harness.sync.scrape import metrics_views

AGENT: Final = Path(__file__).with_name("agent.py")
MODULE: Final = "staticfire_sync_agent"
LIMIT_SECONDS: Final = 900.0
"""A start may compile and capture graphs."""

OUTPUT: Final = "output.txt"
TAIL_LINES: Final = 3
"""How many of the last lines of output are quoted, where the engine refers to them."""

MERGES: Final[Mapping[str, tuple[str, Merge, str]]] = {
    "max_model_len": ("model.max_model_len", "minimum", "the front end takes the smaller"),
    "num_gpu_blocks": ("cache.num_gpu_blocks", "sum_over_engines", "added up over engines"),
    "block_size": ("cache.block_size", "must_agree", "the last engine to answer wins"),
    "mamba_block_size": ("cache.mamba_block_size", "must_agree", "the last engine to answer wins, with None too"),
    "kv_cache_size_tokens": ("cache.kv_cache_size_tokens", "per_engine", "the first engine to answer wins"),
    "kv_cache_max_concurrency": ("cache.kv_cache_max_concurrency", "per_engine", "the first engine to answer wins"),
}
"""Field of vLLM's ready response -> the configuration field that its Python front end puts it into, and how."""


class VllmEngine:
    """An installed vLLM.

    Args:
        python: The interpreter that has it.
        limit: Seconds that a start may take.
    """

    name = "vllm"

    def __init__(self, python: str, limit: float = LIMIT_SECONDS) -> None:
        self._python, self._limit = python, limit

    def look(self, model: str, typed: Mapping[str, Any]) -> Seen:
        """Start it, collect everyone's views, stop it.

        Args:
            model: A tiny model's name, a folder with a checkpoint, or an id that vLLM finds itself.
            typed: Keywords of `LLM`.

        Raises:
            InputError: It cannot run here, or refuses the configuration.
        """
        with tempfile.TemporaryDirectory(prefix="staticfire-sync-") as folder:
            told = self._ask(Path(folder), {"model": _model(model), "typed": _absolute(dict(typed))})
            version = told.get("version") or "of unknown version"
            if "error" in told:
                above = _tail(Path(folder) / OUTPUT) if "root cause" in told["error"] else ""
                raise InputError(
                    f"vLLM {version} in {self._python} could not be looked at here: {told['error']}{above}"
                )
        return seen(told)

    def _ask(self, folder: Path, question: Mapping[str, Any]) -> dict[str, Any]:
        """Run the agent in a process group of its own, which ends with this call."""
        _install(folder)
        asked, answer, said = folder / "question.json", folder / "answer.json", folder / OUTPUT
        asked.write_text(json.dumps(question), encoding="utf-8")
        command = [isolation.program(self._python), str(folder / f"{MODULE}.py"), str(asked), str(answer)]
        try:
            with said.open("wb") as output, isolation.empty_folder() as here:
                process = subprocess.Popen(  # noqa: S603 -- the user names the interpreter
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=here,
                    env=_environment(folder),
                    start_new_session=True,
                )
                try:
                    process.wait(self._limit)
                finally:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        except OSError as error:
            raise InputError(f"{self._python}: cannot be started: {error.strerror or error}") from error
        except subprocess.TimeoutExpired as error:
            raise InputError(f"{self._python}: vLLM did not answer within {self._limit:g} s{_tail(said)}") from error
        try:
            told: dict[str, Any] = json.loads(answer.read_bytes())
        except (OSError, ValueError) as error:
            raise InputError(f"{self._python}: vLLM ended with {process.returncode}{_tail(said)}") from error
        return told


def seen(told: Mapping[str, Any]) -> Seen:
    """From what the agent told to what is compared."""
    front, carried = told["front_end"], told["ready"]
    views = [
        View(role="front end", fields=front),
        View(role="engine core", engine=0, fields=told["core"]),
        *(View(role="worker", engine=0, rank=rank, fields=view) for rank, view in enumerate(told["workers"])),
    ]
    cache = tuple(name.partition(".")[2] for name in told["core"] if name.startswith("cache."))
    shown = metrics_views(told["metrics"], {"cache": cache})
    return Seen(
        engine=f"vllm {told['version']}",
        views=[*views, *(_plain_labels(view, told["core"]) for view in shown)],
        roads={
            field: Road(merge, f"ready response, field {name}: {how}")
            for name, (field, merge, how) in MERGES.items()
            if name in carried
        },
        notes=() if shown else ("vLLM exported no cache_config_info, so its metrics were not compared",),
    )


def _plain_labels(view: View, core: Mapping[str, Any]) -> View:
    """VLLM writes None as the label "None", and shows private fields: neither is a difference."""
    fields = {
        name: None if value == "None" and core.get(name) is None else value
        for name, value in view.fields.items()
        if name in core
    }
    return View(role=view.role, engine=view.engine, fields=fields)


def _model(asked: str) -> str:
    """A folder where there is one; else the words as they are, which vLLM may understand."""
    try:
        return str(checkpoint(asked).absolute())  # the engine runs in a folder of its own
    except InputError:
        if asked in catalog.names() or asked.count("/") != 1:
            raise
        return asked


def _absolute(value: Any) -> Any:
    """What is typed, with paths of files that are here from the root on: the engine runs in a folder of its own."""
    match value:
        case str() if os.sep in value and os.path.exists(value):  # noqa: PTH110 -- any text, NUL included
            return os.path.abspath(value)  # noqa: PTH100 -- links stay
        case dict():
            return {key: _absolute(item) for key, item in value.items()}
        case list() | tuple():
            return [_absolute(item) for item in value]
    return value


def _install(folder: Path) -> None:
    """Lay the agent where every process of the engine finds it, announced as a plug-in."""
    shutil.copyfile(AGENT, folder / f"{MODULE}.py")
    info = folder / f"{MODULE}-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {MODULE}\nVersion: 0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[vllm.general_plugins]\n{MODULE} = {MODULE}:register\n", encoding="utf-8")


def _environment(folder: Path) -> dict[str, str]:
    """The user's, as far as another interpreter may see it, with the plug-in."""
    kept = isolation.environment()
    path = [str(folder), *filter(None, [kept.get("PYTHONPATH")])]
    plugins = os.environ.get("VLLM_PLUGINS")
    more = {} if plugins is None else {"VLLM_PLUGINS": ",".join(filter(None, [plugins, MODULE]))}
    return kept | {"PYTHONPATH": os.pathsep.join(path), **more}


def _tail(said: Path) -> str:
    """The last lines that were printed."""
    with contextlib.suppress(OSError):
        lines = said.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-TAIL_LINES:]
        if lines:
            return "; it last said: " + " | ".join(line.strip() for line in lines)
    return ""
