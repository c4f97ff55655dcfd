environment_variables = {"VLLM_CACHE_ROOT": str, "VLLM_LOGGING_LEVEL": str}
