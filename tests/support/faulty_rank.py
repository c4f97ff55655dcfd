"""A tensor-parallel rank that counts one block fewer for every rank before it."""

from dataclasses import replace
from unittest.mock import patch

from staticfire.engine.config.engine_config import EngineConfig, ResolvedConfig
from staticfire.engine.executor import rank
from staticfire.engine.executor.messages import Setup, decode
from staticfire.engine.process.frames import Channel
from staticfire.engine.worker.settle import settle_worker


def main(payload: bytes, channel: Channel) -> int:
    """Be that rank; the entry of its process."""
    number = decode(payload, Setup).rank

    def settle(resolved: ResolvedConfig) -> EngineConfig:
        config = settle_worker(resolved)
        blocks = config.runtime.num_gpu_blocks - number
        return replace(config, runtime=replace(config.runtime, num_gpu_blocks=blocks))

    with patch("staticfire.engine.worker.worker.settle_worker", settle):
        return rank.main(payload, channel)
