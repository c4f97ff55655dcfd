"""`@pytest.mark.matrix`: which tests it makes, what they are called, and how mistakes are told."""

import pytest

from staticfire.harness.errors import InputError
from staticfire.harness.plugin.marker import cells_of

CELLS = """
    import pytest

    @pytest.mark.matrix("toy.toml"{selection})
    def test_cell(cell):
        assert cell.verdict == "valid"
"""
ALL = [
    "jamba-tiny-b16",
    "jamba-tiny-b32",
    "jamba-tiny-unchunked-b16",
    "jamba-tiny-unchunked-b32",
    "llama-tiny-b16",
    "llama-tiny-b32",
    "llama-tiny-unchunked-b16",
    "llama-tiny-unchunked-b32",
]


def ids(run):
    return sorted(name.partition("[")[2].rstrip("]") for name in run.outcomes)


def test_cells_are_the_ids(suite):
    suite.write("test_it.py", CELLS.format(selection=', verdict="valid"'))
    run = suite.run()
    assert ids(run) == [name for name in ALL if name not in ("jamba-tiny-unchunked-b16", "jamba-tiny-unchunked-b32")]
    assert set(run.outcomes.values()) == {"passed"}


def select(suite, *names, **keywords):
    mark = pytest.mark.matrix(*(names or ("toy.toml",)), **keywords).mark
    return [cell.id for cell in cells_of(mark, suite.folder)[1]]


@pytest.mark.parametrize(
    ("keywords", "kept"),
    [
        ({}, ALL),
        ({"model": "jamba*"}, ALL[:4]),
        ({"model": "llama-tiny", "block_size": 32}, [ALL[5], ALL[7]]),
        ({"model": ["llama-tiny"], "block_size": "1?"}, [ALL[4], ALL[6]]),
        ({"enable_chunked_prefill": False, "model": "jamba-tiny"}, ALL[2:4]),
        ({"enable_chunked_prefill": "false", "model": "jamba-tiny"}, ALL[2:4]),
        ({"verdict": "refused"}, ALL[2:4]),
    ],
)
def test_axes_select(suite, keywords, kept):
    assert sorted(select(suite, **keywords)) == kept


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"modell": "jamba-tiny"}, "no such axis. Did you mean 'model'?"),
        ({"model": "jamba-tinny"}, "Did you mean 'jamba-tiny'?"),
        ({"block_size": 17}, "Values: 16, 32."),
        ({"block_size": True}, "block_size=True: no value of this axis is meant"),
        ({"verdict": "refuse"}, "must be one of valid, refused"),
        ({"words": "SF101"}, "must map codes of rules"),
        ({"model": "llama-tiny", "verdict": "refused"}, "no cell has model='llama-tiny', verdict='refused'"),
    ],
)
def test_mistakes_in_a_marker_are_told_with_place_and_remedy(suite, keywords, words):
    with pytest.raises(InputError, match=r"toy\.toml: ") as told:
        select(suite, **keywords)
    assert words in str(told.value)


def test_all_mistakes_come_at_once(suite):
    with pytest.raises(InputError) as told:
        select(suite, modell=1, block_size=17)
    assert len(str(told.value).splitlines()) == 2


@pytest.mark.parametrize(("names", "words"), [(["hybird"], "Did you mean 'hybrid'?"), (["a", "b"], "takes one matrix")])
def test_a_matrix_that_is_none_is_told(suite, names, words):
    with pytest.raises(InputError) as told:
        select(suite, *names)
    assert words in str(told.value)


def test_a_mistake_stops_the_collection_of_its_file(suite):
    suite.write("test_it.py", CELLS.format(selection=", modell=1"))
    run = suite.run()
    assert run.code == pytest.ExitCode.INTERRUPTED
    assert "test_it.py::test_cell: " in run.text
    assert "Did you mean 'model'?" in run.text
    assert "Traceback" not in run.text


def test_a_marked_test_without_the_argument_is_a_mistake(suite):
    suite.write("test_it.py", 'import pytest\n@pytest.mark.matrix("toy.toml")\ndef test_it(): ...\n')
    run = suite.run()
    assert run.code == pytest.ExitCode.INTERRUPTED
    assert "needs the argument 'cell'" in run.text


def test_the_argument_without_a_marker_is_a_mistake(suite):
    suite.write("test_it.py", "def test_it(cell): ...\n")
    run = suite.run()
    assert run.outcomes == {"test_it::test_it": "error"}
    assert "the fixture 'cell' needs the marker: @pytest.mark.matrix(\"hybrid\")" in run.text


def test_drawn_data_varies_inside_a_cell(suite):
    suite.write(
        "test_it.py",
        """
        import pytest
        from hypothesis import given, strategies as st

        @pytest.mark.matrix("toy.toml", model="llama-tiny", block_size=16)
        @given(number=st.integers(0, 9))
        def test_cell(cell, cell_runner, number):
            assert cell.model == "llama-tiny"
            assert callable(cell_runner)
            assert number < 10
        """,
    )
    run = suite.run()
    assert ids(run) == ["llama-tiny-b16", "llama-tiny-unchunked-b16"]
    assert run.count("passed") == 2, run.text


def test_a_test_may_ask_for_the_runner_alone(suite):
    suite.write(
        "test_it.py",
        """
        import pytest

        @pytest.mark.matrix("toy.toml", model="llama-tiny", block_size=16)
        def test_cell(cell_runner):
            assert callable(cell_runner)
        """,
    )
    run = suite.run()
    assert ids(run) == ["llama-tiny-b16", "llama-tiny-unchunked-b16"]
    assert run.count("passed") == 2, run.text
    assert run.properties["test_it::test_cell[llama-tiny-b16]"]["cell"] == "llama-tiny-b16"


def test_a_marked_class_reaches_the_tests_that_ask_for_cells(suite):
    suite.write(
        "test_it.py",
        """
        import pytest

        @pytest.mark.matrix("toy.toml", model="llama-tiny")
        class TestIt:
            def test_cell(self, cell):
                assert cell.model == "llama-tiny"

            def test_other(self):
                assert True
        """,
    )
    run = suite.run()
    assert (run.count("passed"), len(run.outcomes)) == (5, 5)


def test_the_command_line_narrows_further(suite):
    suite.write("test_it.py", CELLS.format(selection="") + "\n    def test_other():\n        assert True\n")
    run = suite.run("--sf-select", "model=llama*", "--sf-select", "block_size=16")
    assert ids(run) == ["", "llama-tiny-b16", "llama-tiny-unchunked-b16"]
    assert "6 deselected" in run.text


def test_mistakes_in_options_are_usage_errors_told_at_once(suite):
    suite.write("test_it.py", CELLS.format(selection=""))
    wrong = ["--sf-engine=vlm", "--sf-guards=leak", "--sf-shard=4/3", "--sf-hypothesis=nigthly"]
    run = suite.run(*wrong)
    assert run.code == pytest.ExitCode.USAGE_ERROR
    for words in ("Did you mean 'vllm'?", "Did you mean 'leaks'?", "1 <= K <= N", "Did you mean 'nightly'?"):
        assert words in run.text


def test_mistakes_in_selections_are_told_when_the_axes_are_known(suite):
    suite.write("test_it.py", CELLS.format(selection=""))
    run = suite.run(
        "--sf-select=modle=x", "--sf-select=model", "--sf-select=model=lama-tiny", "--sf-select=block_size=7*"
    )
    assert run.code == pytest.ExitCode.USAGE_ERROR
    for words in (
        "Did you mean 'model'?",
        "Did you mean 'llama-tiny'?",
        "block_size=7*: no value of that axis is meant",
    ):
        assert words in run.text
    assert "must be AXIS=VALUE" in run.text


def test_tags_of_a_cell_are_properties_of_its_report(suite):
    suite.write("test_it.py", CELLS.format(selection=', model="jamba-tiny", block_size=16, verdict="valid"'))
    run = suite.run()
    assert run.properties["test_it::test_cell[jamba-tiny-b16]"] == {
        "matrix": "toy",
        "cell": "jamba-tiny-b16",
        "engine": "reference",
        "model": "jamba-tiny",
        "quantization": "unset",
        "cache_mode": "unset",
    }
