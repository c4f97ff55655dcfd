"""The configuration as a stranger sees it: read off the metrics page over HTTP."""

import ast
from typing import Any, Final
from urllib.error import URLError
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from staticfire.engine.view import Plain, View
from staticfire.harness.errors import InputError

LIMIT_SECONDS: Final = 30
INFO: Final = "cache_config_info"


def fetch(url: str) -> str:
    """The text of a metrics page.

    Raises:
        InputError: Nobody answers there, or not with metrics.
    """
    try:
        with urlopen(url, timeout=LIMIT_SECONDS) as answer:  # noqa: S310 -- the caller's own server
            text: str = answer.read().decode()
            return text
    except (URLError, OSError, ValueError) as error:
        raise InputError(f"{url}: no metrics there: {error}") from error


def metrics_views(text: str, sections: dict[str, tuple[str, ...]]) -> list[View]:
    """The labels of `cache_config_info`, engine by engine.

    Args:
        text: A page in Prometheus' text format.
        sections: Section -> its fields, the one that shows where two have a name first.

    Returns:
        One view an engine. A label that belongs to no section is kept, under `metrics.`.
    """
    home = {field: section for section, names in reversed(sections.items()) for field in names}
    return [
        View(role="metrics", engine=int(sample.labels["engine"]), fields=_fields(sample.labels, home))
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.partition(":")[2] == INFO
    ]


def _fields(labels: dict[str, str], home: dict[str, str]) -> dict[str, Plain]:
    return {f"{home.get(name, 'metrics')}.{name}": _value(text) for name, text in labels.items() if name != "engine"}


def _value(text: str) -> Plain:
    """The value that was written as a label: a number, a truth value, else the text. Of "None" nothing is made."""
    try:
        value: Any = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value if isinstance(value, bool | int | float) else text
