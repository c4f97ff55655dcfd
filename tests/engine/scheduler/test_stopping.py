import pytest

from staticfire.engine.request import RequestStatus
from staticfire.engine.scheduler.stopping import accept_token
from toy_engine.factories import toy_request

EOS = frozenset({2, 3})
RUNNING, STOPPED, LENGTH = RequestStatus.RUNNING, RequestStatus.FINISHED_STOPPED, RequestStatus.FINISHED_LENGTH


@pytest.mark.parametrize(
    ("params", "tokens", "statuses"),
    [
        ({"max_tokens": 3}, [5, 6, 7], [RUNNING, RUNNING, LENGTH]),
        ({"max_tokens": 1}, [5], [LENGTH]),
        ({}, [5, 2], [RUNNING, STOPPED]),
        ({}, [3], [STOPPED]),
        ({"ignore_eos": True, "max_tokens": 3}, [2, 3, 2], [RUNNING, RUNNING, LENGTH]),
        ({"stop_token_ids": (9,)}, [5, 9], [RUNNING, STOPPED]),
        ({"stop_token_ids": (9, 2), "ignore_eos": True}, [3, 2], [RUNNING, STOPPED]),
        ({"max_tokens": 2}, [5, 2], [RUNNING, STOPPED]),  # both at once: the stop token wins
        ({"forced_token_ids": (2, 4), "max_tokens": 1}, [8, 8], [RUNNING, LENGTH]),
    ],
)
def test_statuses_after_each_token(params, tokens, statuses):
    request = toy_request("r", [1, 1], **params)
    request.status = RUNNING
    seen = []
    for token in tokens:
        accept_token(request, token, EOS, max_model_len=100)
        seen.append(request.status)
    assert seen == statuses
    assert request.output_token_ids == list(params.get("forced_token_ids", tokens))


def test_a_full_context_ends_the_request():
    request = toy_request("r", [1] * 6, max_tokens=50)
    request.status = RUNNING
    accept_token(request, 5, EOS, max_model_len=8)
    assert request.status is RUNNING
    accept_token(request, 5, EOS, max_model_len=8)
    assert request.status is LENGTH
    assert request.num_tokens == 8
