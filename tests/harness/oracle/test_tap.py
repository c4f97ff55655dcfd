import numpy as np
import pytest
import torch
from torch import nn

from staticfire.harness.oracle.base import OracleError
from staticfire.harness.oracle.families import Family
from staticfire.harness.oracle.tap import RouterTap

pytestmark = pytest.mark.engine

LOGITS = torch.tensor([[4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 5.0, 4.0]])


class Router(nn.Module):
    def forward(self, logits):
        weights, indices = torch.softmax(logits, -1).topk(2)
        return logits, weights, indices


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Router(), nn.Identity(), Router()])

    def forward(self, logits):
        return [layer(logits * (i + 1)) for i, layer in enumerate(self.layers) if isinstance(layer, Router)]


@pytest.fixture
def family():
    return Family(router="Router")


def test_records_in_layer_order_over_several_passes(family):
    model = Model()
    with RouterTap(model, family) as tap:
        model(LOGITS[:2])
        model(LOGITS[2:])
    assert tap.chosen.tolist() == [[[0, 1], [3, 2], [2, 3]]] * 2
    np.testing.assert_array_equal(tap.logits, np.stack([LOGITS.numpy(), LOGITS.numpy() * 3]))
    model(LOGITS)
    assert tap.chosen.shape == (2, 3, 2), "closed taps record nothing"


def test_forces_choices_with_the_weights_the_router_would_give_them(family):
    model = Model()
    forced = np.array([[[1, 2], [3, 2], [2, 3]], [[0, 1], [3, 2], [0, 1]]], np.int16)
    with RouterTap(model, family, forced) as tap:
        first, second = model(LOGITS)
    assert first[2].tolist() == forced[0].tolist()
    probabilities = torch.softmax(LOGITS, -1)
    torch.testing.assert_close(first[1][0], probabilities[0, [1, 2]])
    torch.testing.assert_close(first[1][1], probabilities[1, [3, 2]])
    torch.testing.assert_close(second[1][2], torch.softmax(LOGITS * 3, -1)[2, [0, 1]])
    np.testing.assert_array_equal(tap.chosen, forced)


def test_renormalizes_where_the_family_does():
    model = Model()
    forced = np.array([[[1, 2]], [[1, 2]]], np.int16)
    with RouterTap(model, Family(router="Router", renormalize=True), forced):
        first, _ = model(LOGITS[:1])
    assert first[1].sum() == pytest.approx(1.0)


def test_the_same_experts_in_another_order_are_left_as_the_router_gave_them(family):
    model = Model()
    with RouterTap(model, family, np.array([[[1, 0]], [[1, 0]]], np.int16)):
        first, _ = model(LOGITS[:1])
    assert first[2].tolist() == [[0, 1]]


@pytest.mark.parametrize("shape", [(1, 3, 2), (3, 3, 2), (2, 2, 2), (2, 3, 1)])
def test_routing_of_another_shape_is_refused(family, shape):
    model = Model()
    with pytest.raises(OracleError, match="routing"), RouterTap(model, family, np.zeros(shape, np.int16)):
        model(LOGITS)


def test_a_family_without_routers_has_an_empty_tap():
    with RouterTap(Model(), Family()) as tap:
        pass
    assert tap.chosen.shape == (0, 0, 0)


def test_half_precision_logits_are_recorded_in_float32_and_float64_stays(family):
    model = Model()
    for dtype, kept in ((torch.bfloat16, np.float32), (torch.float64, np.float64)):
        with RouterTap(model, family) as tap:
            model(LOGITS.to(dtype))
        assert tap.logits.dtype == kept
