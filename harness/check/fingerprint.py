"""Names of findings that outlive edits elsewhere: no line numbers, no figures, no versions."""

import hashlib
from typing import Final

from staticfire.harness.check.messages import normalise, origin_file
from staticfire.harness.check.observe import Observation

LENGTH: Final = 16


def fingerprint(one: Observation) -> str:
    """Sixteen hexadecimal digits that stay while kind, message, file, function, form and keyword do.

    The engine's message counts without numbers and names of models; where in the engine it arises counts not at all,
    since that moves with every release.
    """
    site = one.case.site
    parts = [one.kind, normalise(one.message, one.model), one.keyword, site.where.path, site.function, site.form]
    return digest(parts)


def digest(parts: list[str]) -> str:
    """A short hash of texts."""
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:LENGTH]


def cause(one: Observation) -> str:
    """The same for a root cause, wherever it occurs."""
    kind, origin, message, keyword = one.cause
    return digest([kind, origin_file(origin), message, keyword])
