"""The routing recorder, fed hand-made steps."""

import numpy as np
import pytest
import torch

from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.scheduler.output import ScheduledChunk, SchedulerOutput, StepOutput
from staticfire.harness.oracle.recorder import RoutingRecorder

pytestmark = pytest.mark.engine


def step(recorder, *chunks, layers=(0, 3)):
    """Each chunk is (request, start, values): token t of layer l goes to experts (value, value + l)."""
    scheduled = tuple(
        ScheduledChunk(name, [0] * len(values), start, (), (), True, SamplingParams(), 4)
        for name, start, values in chunks
    )
    output = SchedulerOutput(0, scheduled)
    recorder.before_forward(output, None)
    values = torch.tensor([value for _, _, values in chunks for value in values])
    for layer in reversed(layers):  # the order of calls is not the order of layers
        ids = torch.stack([values, values + layer], -1)
        recorder.routing(layer, ids, ids.float(), ids.float())
    recorder.step(output, StepOutput({}, {}, {}))


def test_rows_are_handed_to_their_requests_and_positions():
    recorder = RoutingRecorder()
    step(recorder, ("a", 0, [1, 2]), ("b", 0, [5]))
    step(recorder, ("b", 1, [6]), ("a", 2, [3]))
    found = recorder.collect({"a": (9, 9, 9), "b": (7, 8)})
    assert found["a"].tolist() == [[[1, 1], [2, 2], [3, 3]], [[1, 4], [2, 5], [3, 6]]]
    assert found["b"].tolist() == [[[5, 5], [6, 6]], [[5, 8], [6, 9]]]


def test_a_recomputed_position_keeps_its_latest_experts():
    recorder = RoutingRecorder()
    step(recorder, ("a", 0, [1, 2]))
    step(recorder, ("a", 0, [3, 4]))
    assert recorder.collect({"a": (9, 9)})["a"][0, :, 0].tolist() == [3, 4]


def test_a_position_spared_by_a_prefix_hit_has_the_experts_of_the_request_that_computed_it():
    recorder = RoutingRecorder()
    step(recorder, ("a", 0, [1, 2, 3]))
    recorder.collect({"a": (10, 11, 12)})
    step(recorder, ("b", 2, [7]))
    assert recorder.collect({"b": (10, 11, 13)})["b"][0, :, 0].tolist() == [1, 2, 7]


def test_within_one_run_as_well():
    recorder = RoutingRecorder()
    step(recorder, ("a", 0, [1, 2]))
    step(recorder, ("b", 1, [7]))
    assert recorder.collect({"b": (10, 12), "a": (10, 11)})["b"][0, :, 0].tolist() == [1, 7]


def test_another_beginning_is_no_prefix_and_stays_unknown():
    recorder = RoutingRecorder()
    step(recorder, ("a", 0, [1, 2]))
    recorder.collect({"a": (10, 11)})
    step(recorder, ("b", 1, [7]))
    found = recorder.collect({"b": (99, 11)})["b"]
    assert found[0, :, 0].tolist() == [-1, 7]


def test_a_model_without_routers_has_no_layers():
    recorder = RoutingRecorder()
    step(recorder, ("a", 0, [1]), layers=())
    assert recorder.collect({"a": (1, 2)})["a"].shape == (0, 2, 0)


def test_what_was_collected_is_forgotten():
    recorder = RoutingRecorder()
    step(recorder, ("a", 0, [1]))
    recorder.collect({"a": (10,)})
    step(recorder, ("b", 0, [5]))
    found = recorder.collect({"b": (11,), "a": (12,)})
    assert found["b"][0, 0, 0] == 5
    assert np.all(found["a"] == -1)
