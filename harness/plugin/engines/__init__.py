"""The engines that `vllm_runner` can start. A new one is one file and one line in `registry`."""
