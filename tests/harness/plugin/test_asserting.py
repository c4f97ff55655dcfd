"""Which lines assert: a test in an unusual style is no test without an assertion."""

import pytest

from staticfire.harness.plugin.guards.asserting import asserting_lines
from staticfire.harness.plugin.guards.watch import make_watch

HEAD = """
import subprocess, sys, unittest
import pytest

def holds(value):
    return value

def check_it(value):
    return value
"""
SEEN = {
    "assert": "assert True",
    "several_lines": "x = 1\nassert (\n    x\n    == 1\n)",
    "chained_call": "(\n    unittest.TestCase()\n    .assertEqual(1, 1)\n)",
    "raises": "with pytest.raises(\n    ValueError,\n    match='invalid',\n):\n    int('x')",
    "raises_second": "with open('/dev/null') as file, pytest.raises(ValueError):\n    int('x')",
    "raise_in_a_branch": "if holds(1) != 1:\n    raise RuntimeError('wrong')",
    "condition_of_several_lines": "if (\n    holds(1)\n    != 1\n):\n    raise RuntimeError('wrong')",
    "fails_when_it_raises": "try:\n    holds(1)\nexcept ValueError:\n    pytest.fail('raised')",
    "in_a_comprehension": "[check_it(n) for n in (1, 2)]",
    "checked_process": "subprocess.run(\n    [sys.executable, '-c', ''], check=True\n)",
    "in_a_coroutine": "import asyncio\nasync def body():\n    assert True\nasyncio.run(body())",
}
UNSEEN = {
    "nothing": "holds(1)",
    "never_called": "def inner():\n    assert True",
    "returns_early": "if holds(1):\n    return\nassert True",
    "skips": "if holds(0):\n    raise unittest.SkipTest('no device')",
    "unchecked_process": "subprocess.run([sys.executable, '-c', ''], check=False)",
}


def seen(path, body):
    """Whether the watch sees an assertion when a function with this body runs, as Python compiles it."""
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    path.write_text(f"{HEAD}\ndef run():\n{indented}\n")
    namespace: dict[str, object] = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    run = namespace["run"]
    assert callable(run)
    watch = make_watch(lambda file: asserting_lines(file) if file == str(path) else frozenset())
    if not watch.start():
        pytest.fail("something else traces here")
    try:
        run()
    finally:
        watch.stop()
    return watch.seen


@pytest.mark.parametrize("style", SEEN)
def test_an_assertion_is_seen_in_any_style(tmp_path, style):
    assert seen(tmp_path / f"{style}.py", SEEN[style])


@pytest.mark.parametrize("style", UNSEEN)
def test_what_asserts_nothing_is_not_taken_for_an_assertion(tmp_path, style):
    assert not seen(tmp_path / f"{style}.py", UNSEEN[style])
