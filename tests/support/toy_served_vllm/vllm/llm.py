import multiprocessing
import os
import time
from types import SimpleNamespace

from prometheus_client import Gauge

from vllm.config import VllmConfig


class Client:
    def __init__(self, vllm_config):
        from vllm.v1.engine.core import serve

        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        context.Process(target=serve, args=(vllm_config, theirs), daemon=True).start()
        theirs.close()
        try:
            ready = self._pipe.recv()
        except EOFError as error:
            raise RuntimeError(
                "Engine core initialization failed. See root cause above.\nFailed core proc(s)"
            ) from error
        vllm_config.model_config.max_model_len = ready.pop("max_model_len")
        for name, value in ready.items():
            setattr(vllm_config.cache_config, name, value)

    def call_utility(self, method, *args):
        self._pipe.send((method, args))
        return self._pipe.recv()


class LLM:
    def __init__(self, model, disable_log_stats, tensor_parallel_size=1):
        fault = os.environ.get("TOY_FAULT")
        if fault == "hangs":
            time.sleep(3600)
        if fault == "refuses":
            raise ValueError("tensor_parallel_size must divide 4\n  and more")
        config = VllmConfig()
        config.model_config.model = model
        config.parallel_config.tensor_parallel_size = tensor_parallel_size
        self.llm_engine = SimpleNamespace(vllm_config=config, engine_core=Client(config))
        if not disable_log_stats:
            labels = {name: str(value) for name, value in vars(config.cache_config).items()} | {"engine": "0"}
            Gauge("vllm:cache_config_info", "Information", labelnames=list(labels)).labels(**labels).set(1)

    def collective_rpc(self, method):
        return self.llm_engine.engine_core.call_utility("collective_rpc", method)
