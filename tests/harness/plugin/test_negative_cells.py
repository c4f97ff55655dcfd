"""Cells that the engine must refuse pass only when it refuses them, and by the rule that the matrix names."""

BODY = """
    import pytest
    from staticfire.engine.config import accept, model_info
    from staticfire.engine.config.errors import ConfigError, Fault
    from staticfire.harness.models import catalog

    def start(cell, **changes):
        return accept({{**cell.config, **changes}}, model_info(catalog.load(cell.model).config, cell.model))

    {fixture}

    @pytest.mark.matrix("toy.toml", block_size=16, model="jamba-tiny")
    def test_cell(cell{arguments}):
        {body}
"""


def outcomes(suite, body, fixture="", arguments=""):
    suite.write("test_it.py", BODY.format(body=body, fixture=fixture, arguments=arguments))
    run = suite.run()
    return {name.partition("[")[2].rstrip("]"): outcome for name, outcome in run.outcomes.items()}, run


def test_a_refusal_by_the_expected_rule_passes(suite):
    found, run = outcomes(suite, "start(cell)")
    assert found == {"jamba-tiny-b16": "passed", "jamba-tiny-unchunked-b16": "passed"}
    assert run.properties["test_it::test_cell[jamba-tiny-unchunked-b16]"]["refused_by"] == "SF101"


WRONG = {
    "accepted": ("start(cell, enable_chunked_prefill=True)", "accepted unexpectedly; the matrix says refused by SF101"),
    "another_rule": ("start(cell, tensor_parallel_size=3)", "the matrix says by SF101"),
    "no_keyword": ("start(cell, enable_chunked_prefil=1)", "did you mean 'enable_chunked_prefill'"),
    "other_error": ("1 / 0", "ZeroDivisionError"),
    "skipped_by_unittest": ("import unittest; raise unittest.SkipTest('never')", "the body skipped itself (never)"),
    "skipped": ("pytest.skip('not today')", "the body skipped itself (not today)"),
}


def test_anything_else_fails_and_says_how_to_see_it_again(suite):
    head, marker, body = BODY.format(body="", fixture="", arguments="").partition("    @pytest.mark")
    tests = [
        f"{marker}{body.rstrip()}\n            {code}\n".replace("test_cell", f"test_{name}")
        for name, (code, _) in WRONG.items()
    ]
    suite.write("test_it.py", head + "\n".join(tests))
    run = suite.run("--sf-select", "enable_chunked_prefill=false")
    assert run.outcomes == {f"test_it::test_{name}[jamba-tiny-unchunked-b16]": "failed" for name in WRONG}
    for _, words in WRONG.values():
        assert words in run.text
    assert run.text.count("--cell jamba-tiny-unchunked-b16") == len(WRONG)
    assert "During handling" not in run.text


def test_a_refusal_of_a_valid_cell_fails(suite):
    found, _ = outcomes(suite, "start(cell, enable_chunked_prefill=False)")
    assert found["jamba-tiny-b16"] == "failed"


FIXTURE = """
    @pytest.fixture
    def engine(cell):
        return start(cell{changes})
"""


def test_a_fixture_may_be_what_is_refused(suite):
    found, _ = outcomes(suite, "assert engine is not None", FIXTURE.format(changes=""), ", engine")
    assert found == {"jamba-tiny-b16": "passed", "jamba-tiny-unchunked-b16": "passed"}


def test_a_fixture_refused_by_another_rule_fails(suite):
    found, run = outcomes(suite, "...", FIXTURE.format(changes=", tensor_parallel_size=3"), ", engine")
    assert found == {"jamba-tiny-b16": "error", "jamba-tiny-unchunked-b16": "failed"}
    assert "the matrix says by SF101" in run.text


def test_a_rerun_of_a_refused_fixture_is_judged_anew(suite):
    fixture = FIXTURE.format(changes=", **({'tensor_parallel_size': 3} if tries.append(1) or len(tries) == 1 else {})")
    suite.write(
        "test_it.py",
        BODY.format(body="...", fixture="tries = []\n" + fixture, arguments=", engine").replace(
            'model="jamba-tiny")', 'model="jamba-tiny", verdict="refused")'
        ),
    )
    run = suite.run("--reruns", "1")
    assert run.code == 0, run.text
    assert "1 rerun" in run.text
