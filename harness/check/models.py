"""Where a user's own folder keeps the configuration of a model."""

from pathlib import Path


def named_configuration(model: str, folder: Path | None) -> str | None:
    """A configuration of a model in a folder: `owner/name/config.json`, `owner--name.json`, `name.json` and the like.

    Args:
        model: As it is typed.
        folder: Where to look; None for nowhere.

    Returns:
        Path of the folder that holds `config.json`, or of the JSON file; None where there is none, or where the name
        leads out of the folder.
    """
    if folder is None or not model or model.startswith(("/", "~", ".")) or ".." in model.split("/"):
        return None
    last = model.rsplit("/", 1)[-1]
    for name in dict.fromkeys((model, model.replace("/", "--"), last)):
        if (folder / name / "config.json").is_file():
            return str(folder / name)
        if (folder / f"{name}.json").is_file():
            return str(folder / f"{name}.json")
    return None
