"""Every format. A new one is one module and one line here."""

from collections.abc import Mapping

from staticfire.harness.check.formats import buildkite, document, github, junit, sarif, text
from staticfire.harness.check.formats.base import Format

_ALL: tuple[Format, ...] = (text, document, sarif, github, buildkite, junit)

FORMATS: Mapping[str, Format] = {form.NAME: form for form in _ALL}
"""Name for `--format` -> format."""
