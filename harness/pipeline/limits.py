"""What Buildkite takes, and its published schema of pipelines mostly does not say."""

import re
from typing import Final

JOBS_PER_UPLOAD: Final = 500
JOBS_PER_BUILD: Final = 4000

KEY_LENGTH: Final = 100
KEY: Final = re.compile(r"[a-zA-Z0-9_:-]+")
UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
SKIP_LENGTH: Final = 70
CONCURRENCY_GROUP_LENGTH: Final = 200
RETRY_LIMIT: Final = 10

MATRIX_DIMENSIONS: Final = 6
MATRIX_ELEMENTS: Final = 25
MATRIX_ELEMENT_BYTES: Final = 128
MATRIX_ADJUSTMENTS: Final = 12
MATRIX_JOBS: Final = 50

ANNOTATION_BYTES: Final = 1 << 20
ANNOTATION_CONTEXT_LENGTH: Final = 100

COMMAND_BYTES: Final = 100_000
"""The agent exports a command as one variable of the environment, and Linux takes 128 KiB for one."""
