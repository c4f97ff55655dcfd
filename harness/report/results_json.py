"""`results.json`: the run for programs. The schema is docs/schemas/results.json; its version is in every file."""

import msgspec

from staticfire.harness.run.record import RunRecord

NAME = "json"
FILE = "results.json"
SCHEMA = 1
"""Raised when a reader of the former schema would misread the file; new optional keys do not raise it."""


def render(record: RunRecord) -> bytes:
    """Return the file: UTF-8, indented, ending in a newline."""
    document = {
        "schema": SCHEMA,
        "matrix": {"name": record.identity.matrix, "file": record.file, "digest": record.identity.digest},
        "job": record.identity.job,
        "versions": record.identity.versions,
        "content": record.identity.content,
        "started": record.started,
        "seconds": round(record.seconds, 3),
        "selected": record.selected,
        "complete": record.complete,
        "summary": record.summary,
        "cells": record.results,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"
