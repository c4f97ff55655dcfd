"""What suites import by name, so that tests written for vLLM's helpers move over with one changed import."""

from staticfire.harness.plugin.compare import check_logprobs_close, check_outputs_equal
from staticfire.harness.plugin.models import HF_EXAMPLE_MODELS, HfModelInfo, is_quant_method_supported
from staticfire.harness.plugin.refusal import RefusedError
from staticfire.harness.plugin.skips import TypedSkip

__all__ = [
    "HF_EXAMPLE_MODELS",
    "HfModelInfo",
    "RefusedError",
    "TypedSkip",
    "check_logprobs_close",
    "check_outputs_equal",
    "is_quant_method_supported",
]
