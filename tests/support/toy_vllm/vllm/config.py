from contextlib import contextmanager

_current = []


@contextmanager
def set_current_vllm_config(config):
    _current.append(config)
    try:
        yield
    finally:
        _current.pop()


def get_current_vllm_config():
    return _current[-1]
