"""From a configuration to a model with its weights."""

import json
from collections.abc import Hashable
from functools import partial
from pathlib import Path

from staticfire.engine.config.engine_config import ResolvedConfig
from staticfire.engine.dtypes import torch_dtype
from staticfire.engine.loader.weights import CheckpointWeights, DummyWeights, Weights
from staticfire.engine.models.base import Decoder
from staticfire.engine.models.registry import family
from staticfire.engine.parallel.base import Group
from staticfire.engine.parallel.single import SINGLE
from staticfire.engine.quantization.registry import quantization_method
from staticfire.engine.worker import shelf


def load_model(config: ResolvedConfig, group: Group = SINGLE) -> Decoder:
    """Build this rank's part of the model that the configuration names, or borrow it from an open shelf.

    Raises:
        EngineError: The engine does not run this family, dtype or quantization.
        CheckpointError: The checkpoint does not hold exactly the tensors that `config.json` promises.
    """
    if group is not SINGLE:
        return _load(config, group)
    return shelf.borrow(partial(_identity, config), partial(_load, config, group))


def _identity(config: ResolvedConfig) -> Hashable:
    """All that a whole model is made from."""
    model, dummy = config.model, config.load.load_format == "dummy"
    return (
        shelf.stamp(Path(model.model)),
        json.dumps(model.info.hf, sort_keys=True),
        model.dtype,
        config.quantization.method,
        config.kernel.backend,
        model.max_model_len,
        model.seed if dummy else None,
    )


def _load(config: ResolvedConfig, group: Group) -> Decoder:
    info = config.model.info
    module = family(info.architecture)
    dtype = torch_dtype(config.model.dtype, "dtype")
    quantization = quantization_method(config.quantization.method, config.kernel.backend)
    specs = module.tensor_specs(info)
    weights: Weights
    if config.load.load_format == "dummy":
        weights = DummyWeights(specs, dtype, config.model.seed)
    else:
        weights = CheckpointWeights(Path(config.model.model), specs, dtype)
    model = module.build(info, weights, quantization, config.model.max_model_len, group)
    weights.finish()
    return model
