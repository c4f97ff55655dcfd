import functools
import logging


@functools.lru_cache
def _print_warning_once(logger, message):
    logger.warning(message)


logger = logging.getLogger("vllm")
