__version__ = "0.33.0+toy"


def __getattr__(name):
    if name == "LLM":
        from vllm.llm import LLM

        return LLM
    raise AttributeError(name)
