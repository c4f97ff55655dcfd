"""Results reach Test Engine once each, with their tags, whatever the number of workers."""

import json

import pytest

from fake_test_engine import serving

SUITE = """
    import os
    import pytest

    @pytest.mark.matrix("toy.toml", model="jamba-tiny", verdict="valid")
    def test_cell(cell):
        assert cell.id != "jamba-tiny-b32"

    def test_plain():
        assert True
"""
TAGS = {
    "matrix": "toy",
    "cell": "jamba-tiny-b16",
    "engine": "reference",
    "model": "jamba-tiny",
    "quantization": "unset",
    "cache_mode": "unset",
}
WORKERS = {
    "serial": (),
    "one": ("-n", "1"),
    "two": ("-n", "2"),
    "four": ("-n", "4"),
    "tx": ("--dist=load", "--tx=2*popen"),
}


@pytest.fixture
def engine():
    with serving() as made:
        yield made


def run(suite, engine, *arguments, **more):
    environment = {"BUILDKITE_ANALYTICS_TOKEN": "secret", "BUILDKITE_ANALYTICS_API_URL": engine.url, **more}
    return suite.run("--sf-test-engine", *arguments, collector=True, **environment)


@pytest.mark.parametrize("workers", WORKERS.values(), ids=WORKERS)
def test_each_result_arrives_once_with_its_tags(suite, engine, workers):
    suite.write("test_it.py", SUITE)
    done = run(suite, engine, *workers, "--json", "out.json")
    found = {result["name"]: result for result in engine.results}
    assert len(engine.results) == len(found) == 3
    assert {name: result["result"] for name, result in found.items()} == {
        "test_cell[jamba-tiny-b16]": "passed",
        "test_cell[jamba-tiny-b32]": "failed",
        "test_plain": "passed",
    }
    assert found["test_cell[jamba-tiny-b16]"]["tags"] == TAGS
    assert found["test_plain"]["tags"] == {"engine": "reference"}
    assert "3 of 3 results uploaded" in done.text
    assert engine.tokens == {'Token token="secret"'}
    written = json.loads((suite.folder / "out.json").read_text())
    assert {result["name"]: result["tags"] for result in written} == {name: r["tags"] for name, r in found.items()}


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["serial", "two"])
def test_an_error_of_collection_and_a_dead_worker_arrive_too(suite, engine, workers):
    suite.write("test_bad.py", "import no_such_module\n")
    suite.write("test_it.py", SUITE + ("\n    def test_dies():\n        os._exit(3)\n" if workers else ""))
    done = run(suite, engine, "--continue-on-collection-errors", *workers)
    found = {result["name"]: result for result in engine.results}
    assert len(engine.results) == len(found) == (5 if workers else 4)
    assert found["test_bad.py"]["result"] == "failed"
    assert found["test_bad.py"]["tags"]["test.pytest_collection_error"] == "true"
    if workers:
        assert found["test_dies"]["result"] == "failed"
        assert "exited with code 3" in found["test_dies"]["failure_reason"]
    assert done.code == 1


@pytest.mark.parametrize(
    ("status", "words"),
    [(500, "0 of 3 results uploaded"), (401, "401 Client Error")],
)
def test_a_failed_upload_is_seen_and_fails_nothing(suite, engine, status, words):
    engine.status = status
    suite.write("test_it.py", SUITE.replace("cell.id !=", "cell.id and"))
    done = run(suite, engine)
    assert words in done.text
    assert done.code == 0


def test_without_a_server_or_a_token_the_reason_is_told(suite, engine):
    suite.write("test_it.py", "def test_it():\n    assert True\n")
    gone = run(suite, engine, BUILDKITE_ANALYTICS_API_URL="http://127.0.0.1:9/v1")
    assert "0 of 1 results uploaded" in gone.text
    assert "refused" in gone.text
    none = run(suite, engine, BUILDKITE_ANALYTICS_TOKEN="")
    assert "BUILDKITE_ANALYTICS_TOKEN is not set" in none.text
    assert gone.code == none.code == 0


def test_without_the_collector_the_option_is_a_mistake(suite):
    suite.write("test_it.py", "def test_it(): ...\n")
    blocked = suite.run("--sf-test-engine")
    assert blocked.code == pytest.ExitCode.USAGE_ERROR
    assert "buildkite-test-collector is not installed" in blocked.text
