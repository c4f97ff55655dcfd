"""Steps as messages: what a request's chunks have in common travels once. Imports no torch."""

import msgspec

from staticfire.engine.executor.messages import Chunk, Step
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.scheduler.output import ScheduledChunk, SchedulerOutput

_params_encoder = msgspec.json.Encoder()
_params_decoder = msgspec.json.Decoder(SamplingParams)


class StepWriter:
    """Turns steps into messages; every one is to reach every rank, in order."""

    def __init__(self) -> None:
        self._number = 0
        # Compared by identity: an id may come back as another request with equal or other parameters.
        self._sent: dict[str, SamplingParams] = {}

    def write(self, output: SchedulerOutput) -> Step:
        """The next step."""
        self._number += 1
        message = Step(
            self._number,
            output.step,
            tuple(map(self._chunk, output.chunks)),
            output.state_copies,
            output.zero_blocks,
            output.preempted,
            output.finished,
        )
        for request_id in output.finished:
            self._sent.pop(request_id, None)
        return message

    def forget(self) -> None:
        """Send everything anew; the reader need not be told."""
        self._sent.clear()

    def _chunk(self, chunk: ScheduledChunk) -> Chunk:
        params, known = chunk.sampling_params, self._sent.get(chunk.request_id)
        text = b""
        if known is not params:
            # JSON, for a seed may have more than the 64 bits of a msgpack integer.
            text = _params_encoder.encode(params)
            self._sent[chunk.request_id] = params
        return Chunk(
            chunk.request_id,
            chunk.token_ids,
            chunk.start,
            chunk.block_ids,
            chunk.state_blocks,
            chunk.samples,
            text,
            chunk.num_prompt_tokens,
            chunk.hit_tokens,
        )


class StepReader:
    """Turns the messages of a `StepWriter` back into steps."""

    def __init__(self) -> None:
        self._known: dict[str, SamplingParams] = {}

    def read(self, message: Step) -> SchedulerOutput:
        """The step, equal to what was written."""
        output = SchedulerOutput(
            message.step,
            tuple(map(self._chunk, message.chunks)),
            message.state_copies,
            message.zero_blocks,
            message.preempted,
            message.finished,
        )
        for request_id in message.finished:
            self._known.pop(request_id, None)
        return output

    def _chunk(self, chunk: Chunk) -> ScheduledChunk:
        if chunk.sampling_params:
            self._known[chunk.request_id] = _params_decoder.decode(chunk.sampling_params)
        return ScheduledChunk(
            chunk.request_id,
            chunk.token_ids,
            chunk.start,
            chunk.block_ids,
            chunk.state_blocks,
            chunk.samples,
            self._known[chunk.request_id],
            chunk.num_prompt_tokens,
            chunk.hit_tokens,
        )
