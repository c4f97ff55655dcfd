import importlib.util
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from vllm import platforms
from vllm.envs import environment_variables
from vllm.logger import _print_warning_once, logger
from vllm.model_executor.models import ModelRegistry


@dataclass
class CacheConfig:
    block_size: int = 16
    cache_dtype: str = "auto"
    gpu_memory_utilization: float = 0.5
    kv_cache_memory_bytes: int | None = None
    started: float = field(default_factory=random.random)


@dataclass
class TextConfig:
    """Of a config.json: `layers`, and what its attention layers are."""

    head_size: int = 64
    dtype: str = "bfloat16"
    layers: int = 4
    max_model_len: int = 1024
    sliding_window: int | None = None
    planner: str = ""
    backends: tuple[str, ...] = ("COMPILED", "REQUIRED")


@dataclass
class ModelConfig:
    hf_text_config: TextConfig
    is_hybrid: bool = False

    @property
    def dtype(self):
        return self.hf_text_config.dtype

    @property
    def max_model_len(self):
        return self.hf_text_config.max_model_len

    def get_head_size(self):
        return self.hf_text_config.head_size

    def get_num_attention_heads(self, parallel_config):
        return 8

    def get_num_kv_heads(self, parallel_config):
        return 2

    def get_num_layers(self, parallel_config):
        return self.hf_text_config.layers


@dataclass
class ParallelConfig:
    rank: int = 0
    pipeline_parallel_size: int = 1
    tensor_parallel_size: int = 1


@dataclass
class SchedulerConfig:
    max_num_batched_tokens: int = 2048
    max_num_seqs: int = 8


@dataclass
class CompilationConfig:
    static_forward_context: dict = field(default_factory=dict)


@dataclass
class VllmConfig:
    cache_config: CacheConfig
    model_config: ModelConfig
    devices: int = 0
    parallel_config: ParallelConfig = field(default_factory=ParallelConfig)
    scheduler_config: SchedulerConfig = field(default_factory=SchedulerConfig)
    kv_transfer_config: None = None
    compilation_config: CompilationConfig = field(default_factory=CompilationConfig)


@dataclass
class EngineArgs:
    model: str
    skip_tokenizer_init: bool = False
    block_size: int = 16
    tensor_parallel_size: int = 1
    kv_cache_memory_bytes: int | None = None
    act: str = ""
    named: str = ""
    scheduler_cls: str = ""
    fail_on_environ_validation: bool = False

    def create_engine_config(self, usage_context=None):
        config = json.loads((Path(self.model) / "config.json").read_text())
        ModelRegistry.inspect(config["architectures"][0])
        if self.fail_on_environ_validation:
            for name in os.environ:
                if name.startswith("VLLM_A") and name not in environment_variables:
                    raise ValueError(f"Unknown vLLM environment variable detected: {name}")
        if self.act:
            getattr(self, f"_{self.act}")()
        devices = platforms._current_platform.device_count()
        if self.tensor_parallel_size > devices:
            raise ValueError(f"{self.tensor_parallel_size} ranks on {devices} available GPUs")
        if self.block_size % 8:
            raise ValueError(f"block_size {self.block_size} must be a multiple of 8")
        del config["architectures"]
        cache = CacheConfig(self.block_size, kv_cache_memory_bytes=self.kv_cache_memory_bytes)
        return VllmConfig(cache, ModelConfig(TextConfig(**config)), devices=devices)

    def _refuse(self):
        raise AssertionError("Chunked prefill is required.")

    def _stumble(self):
        raise AttributeError("'NoneType' object has no attribute 'x'")

    def _machine(self):
        raise RuntimeError("Found no NVIDIA driver on your system.")

    def _environment(self):
        raise ValueError(f"TOY_MODE is {os.environ.get('VLLM_USE_V2_MODEL_RUNNER')!r}")

    def _import(self):
        importlib.import_module(self.named.partition(":")[0])

    def _swallow(self):
        try:
            importlib.import_module(self.named)
        except Exception:  # noqa: BLE001 -- as engines do
            logger.warning("no plugin")

    def _execute(self):
        spec = importlib.util.spec_from_file_location("plugin", self.named)
        spec.loader.exec_module(importlib.util.module_from_spec(spec))

    def _write(self):
        Path(self.named, "deeper").mkdir(parents=True)

    def _note(self):
        Path(self.named).write_text("written")

    def _start(self):
        subprocess.run([self.named], check=True)

    def _reach(self):
        socket.create_connection((self.named, 9), timeout=0.01)

    def _schedule(self):
        if self.scheduler_cls:
            importlib.import_module(self.scheduler_cls.rpartition(".")[0])

    def _hang(self):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
        time.sleep(3600)

    def _die(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def _leave(self):
        os._exit(3)

    def _noise(self):
        for _ in range(5000):
            sys.stdout.write('{"id": 1, "outcome": "accepted"}\n')
        os.write(2, b"x" * 200_000)

    def _warn(self):
        logger.warning("block_size is ignored")
        _print_warning_once(logger, "said once a process")


AsyncEngineArgs = EngineArgs
