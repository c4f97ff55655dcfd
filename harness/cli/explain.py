"""`staticfire explain MODEL --flag value …`: how one configuration resolves, and why it is refused."""

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import click

from staticfire.engine.errors import EngineError
from staticfire.harness.cli.engine_command import EngineCommand
from staticfire.harness.cli.flags import Parsed, parse
from staticfire.harness.cli.streams import echo, echo_json
from staticfire.harness.errors import InputError

if TYPE_CHECKING:
    from staticfire.engine.config.device import Device
    from staticfire.engine.config.model import ModelInfo
    from staticfire.engine.config.release import EngineRelease

CONNECT_SECONDS: Final = 3.0
DEVICES: Final = {"vllm": "h100-80gb", "staticfire": "cpu"}
"""Engine -> the device that it is judged for where none is named."""


@click.command(
    cls=EngineCommand,
    name="explain",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": True},
    options_metavar="MODEL [--flag value …]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema: docs/schemas/explain.json).")
@click.option(
    "--like",
    metavar="RELEASE",
    help="Engine that is imitated, such as vllm==0.28.0, or reference for the one of this package. "
    "[default: the newest release of vLLM known]",
)
@click.option(
    "--device",
    metavar="NAME",
    help="Name of a device in matrices/devices.toml. [default: h100-80gb; cpu for the reference engine]",
)
@click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="")
def explain(as_json: bool, like: str | None, device: str | None, args: tuple[str, ...]) -> int:
    """Show how a configuration resolves: each value and who set it, what the worker makes of it, what is refused.

    MODEL is a folder with a config.json, a name such as jamba-tiny, or a Hugging Face id. Flags are spelled as in
    vLLM. Exits 1 where a rule refuses the configuration, and prints the smallest verified fix. Where a release of vLLM
    may have what is not computed here, the verdict is "not known", and the exit code 0.
    """
    from staticfire.engine.config import repairs, resolve
    from staticfire.harness.cli.explanation import Explanation

    parsed = parse(args)
    model, release, target, where = _subjects(parsed, like, device)
    resolution = resolve(parsed.typed, model, target, release)
    explanation = Explanation(
        asked=parsed.positional[0],
        where=where,
        model=model,
        release=release,
        device=target,
        named=(like is not None, device is not None),
        typed=parsed.typed,
        resolution=resolution,
        fixes=() if resolution.verdict != "refused" else repairs(parsed.typed, model, target, release),
    )
    if as_json:
        echo_json(json.dumps(explanation.as_json(), indent=2))
    else:
        from staticfire.harness.cli.explain_text import render

        echo(render(explanation))
    return 1 if resolution.verdict == "refused" else 0


def _subjects(
    parsed: Parsed, like: str | None, device: str | None
) -> tuple["ModelInfo", "EngineRelease", "Device", str]:
    """Find the model, the release and the device that are named.

    Args:
        parsed: The command line.
        like: Name of the release; None for the newest one known.
        device: Name of the device; None for the usual one of the engine.

    Returns:
        The model, the release, the device, and where the model was found.

    Raises:
        UsageError: No model is named, or several are.
        InputError, EngineError: The one thing that is wrong, or everything that is.
    """
    from staticfire.engine.config import model_info
    from staticfire.engine.config.errors import ConfigError
    from staticfire.engine.config.typed import read_typed
    from staticfire.harness.models import devices, releases

    faults: list[InputError | EngineError] = [InputError(fault) for fault in parsed.faults]
    release = target = model = None
    where = ""
    try:
        release = releases.find(releases.NEWEST_NAME if like is None else like)
    except InputError as error:
        faults.append(error)
    try:
        target = devices.find(DEVICES[release.engine if release else "vllm"] if device is None else device)
    except InputError as error:
        faults.append(error)
    if not parsed.faults:  # the value of an unknown flag cannot be told from a model
        try:
            name, hf, where = _model(parsed)
            model = model_info(hf, name)
        except (InputError, EngineError) as error:
            faults.append(error)
    if model and release and target and not faults:
        return model, release, target, where
    if keywords := read_typed(parsed.typed)[2]:
        faults.append(ConfigError(keywords))
    if len(faults) == 1:
        raise faults[0]
    told = (str(fault).replace("\n", "\n  ") for fault in faults)
    raise InputError("\n  ".join([f"{len(faults)} faults:", *told]))


def _model(parsed: Parsed) -> tuple[str, Any, str]:
    """Find the one model that is named."""
    if not parsed.positional:
        raise click.UsageError("Name a model: staticfire explain MODEL [--flag value …].")
    if len(parsed.positional) > 1:
        raise click.UsageError(
            f"One model at a time; what is {parsed.positional[1]!r}? "
            "(A boolean flag takes no value: --enable-x or --no-enable-x.)"
        )
    from staticfire.harness.models.catalog import find

    asked = parsed.positional[0]
    try:
        found = find(asked)
    except InputError as error:
        if asked.count("/") != 1 or asked.startswith((".", "/", "~")):
            raise
        found = find(_download(asked, str(error)))
        return asked, found.hf, f"Hugging Face: {asked}"
    return found.name, found.hf, found.where


def _reachable(endpoint: str) -> bool:
    """Whether the hub answers; a proxy is believed, and offline mode is kept. Saves half a minute of retries."""
    if os.environ.get("HF_HUB_OFFLINE", "") not in {"", "0"}:
        return False
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return True
    import socket
    from urllib.parse import urlsplit

    url = urlsplit(endpoint)
    try:
        with socket.create_connection((url.hostname, url.port or 443), timeout=CONNECT_SECONDS):
            return True
    except OSError:
        return False


def _download(asked: str, local: str) -> str:
    """Fetch the `config.json` of `owner/name` from the hub.

    Args:
        asked: The id.
        local: Why nothing on this machine goes by that name.

    Raises:
        InputError: There is no way to ask the hub, or the hub did not give it.
    """
    try:
        from huggingface_hub import constants, hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError
    except ImportError as error:
        raise InputError(f"{local} To ask the hub, install huggingface_hub (the extra `engine`).") from error
    import logging

    from staticfire.engine.config.quantized import BESIDE

    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    if not _reachable(constants.ENDPOINT):
        raise InputError(f"{local} {constants.ENDPOINT} cannot be reached from here.")
    try:
        config = str(hf_hub_download(asked, "config.json"))
        with suppress(EntryNotFoundError):  # most models have none
            hf_hub_download(asked, BESIDE)
    except Exception as error:  # the hub raises its own, the network's and the disk's errors
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(f"{local} The hub says: {reason[0]}") from error
    return config
