"""When a request has ended. Imports no torch."""

from collections.abc import Collection

from staticfire.engine.request import Request, RequestStatus


def accept_token(request: Request, sampled: int, eos_token_ids: Collection[int], max_model_len: int) -> None:
    """Append the next token and end the request if it was the last one.

    A forced token takes the place of the sampled one; only the end of the forced tokens, or of the context, ends such
    a request. Otherwise a stop token wins over a length limit reached at once with it; it stays in the output.

    Args:
        request: Running; its `status` is set when it ends.
        sampled: The token the worker drew.
        eos_token_ids: End-of-sequence tokens of the model.
        max_model_len: Tokens a context holds.
    """
    params, output = request.sampling_params, request.output_token_ids
    if params.forced_token_ids is not None:
        output.append(params.forced_token_ids[len(output)])
        if len(output) == len(params.forced_token_ids):
            request.status = RequestStatus.FINISHED_LENGTH
        return
    output.append(sampled)
    if (sampled in eos_token_ids and not params.ignore_eos) or sampled in params.stop_token_ids:
        request.status = RequestStatus.FINISHED_STOPPED
    elif len(output) >= params.max_tokens or request.num_tokens >= max_model_len:
        request.status = RequestStatus.FINISHED_LENGTH
