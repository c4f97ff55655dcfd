"""Named devices and the file they come from."""

import pytest

from staticfire.engine.config.device import CPU
from staticfire.harness.errors import InputError
from staticfire.harness.models import devices


def test_the_named_devices():
    assert devices.names() == ("cpu", "a100-80gb", "h100-80gb", "h200-141gb", "b200", "l4", "mi300x")


@pytest.mark.parametrize(
    ("name", "kind", "capability"),
    [
        ("a100-80gb", "cuda", (8, 0)),
        ("h100-80gb", "cuda", (9, 0)),
        ("h200-141gb", "cuda", (9, 0)),
        ("b200", "cuda", (10, 0)),
        ("l4", "cuda", (8, 9)),
        ("mi300x", "rocm", (9, 4)),
    ],
)
def test_facts_of_the_accelerators(name, kind, capability):
    device = devices.find(name)
    assert (device.type, device.capability) == (kind, capability)


def test_memory_is_in_bytes():
    assert devices.find("h100-80gb").memory_bytes == 80 * 1024**3


def test_the_cpu_of_the_file_is_the_engines_default():
    assert devices.find("cpu") == CPU


def test_unknown_device_gives_the_nearest():
    with pytest.raises(InputError, match=r"No device named 'h100'.*Did you mean 'h100-80gb'\?.*Devices: cpu, a100"):
        devices.find("h100")


def test_all_faults_of_a_file_at_once():
    text = """
[one]
type = "gpu"
memory_gib = 0
[two]
type = "cuda"
memory_gb = 80
capability = 9.0
[three]
type = "cpu"
memory_gib = 1
capability = "9.0"
"""
    with pytest.raises(InputError) as caught:
        devices.parse(text, "d.toml")
    message = str(caught.value)
    for part in (
        "[one] type must be one of cpu, cuda, rocm, got 'gpu'",
        "[one] memory_gib must be a whole number from 1 on, got 0",
        "[two] unknown key 'memory_gb'. Did you mean 'memory_gib'?",
        "[two] capability must be a string such as '9.0', got 9.0",
        "[three] a cpu has no capability",
    ):
        assert part in message


def test_broken_toml_says_where():
    with pytest.raises(InputError, match=r"d\.toml: .*line 1"):
        devices.parse("x = \n[one]", "d.toml")
