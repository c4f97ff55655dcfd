from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from staticfire.engine.scheduler.policy import POLICIES, WaitingQueue
from toy_engine.factories import toy_engine, toy_request

REQUESTS = st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 20)), max_size=15)


@given(REQUESTS, st.sampled_from(["fcfs", "priority"]), st.data())
def test_queue_is_a_sorted_list(specs, policy, data):
    requests = [toy_request(f"{i}", [1], arrival=a, priority=p) for i, (p, a) in enumerate(specs)]
    queue = WaitingQueue(POLICIES[policy])
    for request in requests:
        queue.push(request)
    for request in data.draw(st.sets(st.sampled_from(requests))) if requests else ():
        queue.remove(request)
        requests.remove(request)
    assert len(queue) == len(requests)
    assert {request.request_id for request in queue.requests()} == {request.request_id for request in requests}
    popped = []
    while len(queue):
        first = queue.first()
        popped.append(queue.pop())
        assert popped[-1] is first

    def rank(request):
        important = request.sampling_params.priority if policy == "priority" else 0
        return important, request.arrival, request.request_id

    assert popped == sorted(requests, key=rank)


def test_removing_any_request_keeps_the_order_of_the_others():
    for arrivals in permutations(range(5)):
        for gone in range(5):
            queue = WaitingQueue(POLICIES["fcfs"])
            requests = [toy_request(f"{arrival}", [1], arrival=arrival) for arrival in arrivals]
            for request in requests:
                queue.push(request)
            queue.remove(requests[gone])
            left = [queue.pop().arrival for _ in range(4)]
            assert left == sorted(arrivals[:gone] + arrivals[gone + 1 :])


def test_priority_admits_the_important_one_first_and_preempts_the_least():
    """Room for two: the third to come is the most important, so it is admitted before the second."""
    engine = toy_engine(policy="priority", max_num_seqs=2, pattern="A", block_size=4, num_blocks=100)
    engine.add(
        toy_request("low", [1] * 8, arrival=0, priority=5, max_tokens=4),
        toy_request("mid", [2] * 8, arrival=1, priority=3, max_tokens=4),
        toy_request("high", [3] * 8, arrival=2, priority=-1, max_tokens=4),
    )
    engine.step()
    assert [chunk.request_id for chunk in engine.steps[0].chunks] == ["high", "mid"]
    engine.run()


def test_the_least_important_running_request_is_preempted():
    engine = toy_engine(policy="priority", pattern="A", block_size=4, num_blocks=8, caching=False)
    engine.add(toy_request("low", [1] * 8, arrival=0, priority=5, max_tokens=12))
    engine.step()
    engine.add(toy_request("high", [2] * 8, arrival=1, priority=1, max_tokens=12))
    engine.run()
    assert engine.requests["low"].num_preemptions > 0
    assert engine.requests["high"].num_preemptions == 0
