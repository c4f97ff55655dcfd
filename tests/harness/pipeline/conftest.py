"""A repository of git in the test's folder."""

import os
import subprocess

import pytest


@pytest.fixture
def git(tmp_path):
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
    }

    def run(*words):
        identity = ["-c", "user.name=Someone", "-c", "user.email=someone@example.org"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, env=environment, check=True, capture_output=True)

    run("init", "-q")
    return run
