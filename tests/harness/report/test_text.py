import pytest

from staticfire.harness.report.text import clean, evidence, headline


def test_a_failure_shows_the_first_difference_and_the_logprobs_around_it(make_result, failure):
    result = make_result("a", "failed", detail={"prompts": 16, "failures": [failure], "rerun": "..."})
    assert evidence(result) == (
        "wrong against transformers: run cold, prompt 3, position 17: logprobs are off by 0.31\n"
        "  expected token 12 ' the', observed 99 ' a'\n"
        "  position            token     expected     observed\n"
        "        17        12 ' the'    -0.125000    -2.500000\n"
        "        17          99 ' a'    -3.000000            -\n"
        "  prompt_name: weather\n"
        "  stats:\n"
        "    cached_tokens: 32\n"
        "    chunks: 0, 16, 16, 16\n"
        "prompts: 16"
    )


def test_in_brief_only_the_first_failure_is_shown(make_result, failure):
    second = {**failure, "position": 18}
    result = make_result("a", "failed", detail={"prompts": 16, "failures": [failure, second]})
    assert "position 18" in evidence(result)
    assert "position 18" not in evidence(result, brief=True)
    assert "prompts" not in evidence(result, brief=True)


def test_in_brief_an_error_that_the_headline_tells_is_not_told_again(make_result):
    detail = {"error": "the worker died", "exit": "exit code 3"}
    assert evidence(make_result("a", "error", detail=detail), brief=True) == "exit: exit code 3"
    detail = {"error": "first\nsecond"}
    assert evidence(make_result("a", "error", detail=detail), brief=True) == "error: first\nsecond"


def test_long_texts_come_last_and_whole(make_result):
    result = make_result("a", "error", detail={"traceback": "a\n  b\n", "error": "E: x", "worker": 1})
    assert evidence(result) == "error: E: x\nworker: 1\ntraceback:\n  a\n    b"


@pytest.mark.parametrize(
    ("verdict", "rule", "detail", "expected"),
    [
        ("passed", None, None, "passed"),
        ("passed", None, {"grade": "exact"}, "passed"),
        ("refused as expected", "SF101", None, "refused as expected (SF101)"),
        ("error", None, {"error": "first\nsecond"}, "error: first"),
        ("failed", None, {"vacuous": {"prefix": "no hit"}}, "failed: prefix no hit"),
        ("failed", None, {"failures": ["text"]}, "failed"),
        ("failed", None, {"failures": [{}]}, "failed: failed against the oracle"),
        ("error", None, {"error": "\n"}, "error"),
    ],
)
def test_headlines(make_result, verdict, rule, detail, expected):
    assert headline(make_result("a", verdict, rule=rule, detail=detail)) == expected


@pytest.mark.parametrize(
    "odd",
    [
        {"expected_token": 3, "observed_token": None},
        {"logprobs": "none"},
        {"logprobs": [1, {"tokens": None}, {"tokens": [{"id": 1, "text": "x", "expected": "nan"}]}]},
    ],
)
def test_evidence_of_another_form_is_shown_all_the_same(make_result, odd):
    text = evidence(make_result("a", "failed", detail={"failures": [{"message": "m", **odd}]}))
    assert text.startswith("failed against the oracle: m")


def test_clean_keeps_text_and_drops_what_no_document_can_hold():
    assert clean("a\tb\nc\x00\x1b[1m\ud800\ufffe\u20ac\U0001f600") == "a\tb\nc[1m\u20ac\U0001f600"
