"""Probes of real releases of vLLM, each in an environment that `tools/vllm_envs.py` has made."""

from pathlib import Path

import pytest
import vllm_envs

from staticfire.harness.models import devices
from staticfire.harness.probe.base import Question
from staticfire.harness.probe.models import ModelSource
from staticfire.harness.probe.vllm.probe import VllmProbe
from staticfire.harness.probe.vllm.process import Limits

VERSIONS = vllm_envs.VERSIONS


@pytest.fixture(scope="session")
def interpreters() -> dict[str, Path]:
    """Version -> its interpreter; missing ones are made, which takes a while and a network."""
    return vllm_envs.make(VERSIONS)


@pytest.fixture(scope="session")
def open_probe(interpreters):
    """Open the probe of a version for a device; one of each for the whole session. Nothing comes from a cache."""
    opened = {}

    def make(version, device="h100-80gb"):
        if (version, device) not in opened:
            opened[version, device] = VllmProbe(
                str(interpreters[version]),
                devices.find(device),
                use_cache=False,
                processes=1,
                limits=Limits(start=600, question=300),
            )
        return opened[version, device]

    yield make
    for probe in opened.values():
        probe.close()


@pytest.fixture(scope="session")
def question():
    """A question about one of our model files."""
    source = ModelSource()

    def make(model, entry="EngineArgs", argv=None, **arguments):
        found = source.find(model)
        assert found is not None
        return Question(str(found.path), arguments, entry, argv)

    return make
