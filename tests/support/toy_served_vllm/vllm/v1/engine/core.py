import copy
import os
from dataclasses import fields

from vllm.plugins import load_general_plugins
from vllm.v1.engine import EngineCoreReadyResponse
from vllm.v1.worker.worker_base import WorkerBase


class EngineCore:
    def __init__(self, vllm_config):
        load_general_plugins()
        self.vllm_config = vllm_config
        size = vllm_config.parallel_config.tensor_parallel_size
        self.workers = [WorkerBase(copy.deepcopy(vllm_config), rank) for rank in range(size)]
        vllm_config.cache_config = copy.copy(self.workers[0].vllm_config.cache_config)

    def collective_rpc(self, method):
        return [getattr(worker, method)() for worker in self.workers]

    def ready(self):
        known = {**vars(self.vllm_config.cache_config), "max_model_len": self.vllm_config.model_config.max_model_len}
        return {field.name: known[field.name] for field in fields(EngineCoreReadyResponse)}


def serve(vllm_config, pipe):
    if os.environ.get("TOY_FAULT") == "dies":
        os.write(2, b"the core fell over\n")
        os._exit(3)
    core = EngineCore(vllm_config)
    pipe.send(core.ready())
    while True:
        method, args = pipe.recv()
        pipe.send(getattr(core, method)(*args))
