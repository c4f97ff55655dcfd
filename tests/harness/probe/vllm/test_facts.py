"""What is told to an engine about each device."""

import pytest

from staticfire.engine.config.device import Device
from staticfire.harness.models import devices
from staticfire.harness.probe.vllm.agent.device import Facts
from staticfire.harness.probe.vllm.facts import NODE, facts


@pytest.mark.parametrize("name", devices.names())
def test_every_named_device_can_be_told(name):
    device = devices.find(name)
    told = Facts(facts(device))
    assert told.type == device.type
    assert told.memory == device.memory_bytes
    assert told.count == (1 if device.type == "cpu" else NODE)
    if device.capability is not None:
        assert told.capability == device.capability
        assert (told.properties().major, told.properties().minor) == device.capability
        assert told.properties().total_memory == device.memory_bytes


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("h100-80gb", ("NVIDIA H100 80GB HBM3", 132)),
        ("a100-80gb", ("NVIDIA A100-SXM4-80GB", 108)),
        ("b200", ("NVIDIA B200", 148)),
    ],
)
def test_names_and_units_are_those_of_the_vendors(name, expected):
    told = facts(devices.find(name))
    assert (told["name"], told["units"]) == expected


def test_the_target_of_a_rocm_device_is_told():
    assert facts(devices.find("mi300x"))["gfx"] == "gfx942"


def test_a_device_of_the_users_own_with_its_count():
    told = facts(Device("mine", "cuda", 48 * 2**30, (8, 6), 2))
    assert (told["count"], told["capability"], told["shared_memory"]) == (2, [8, 6], 101376)
