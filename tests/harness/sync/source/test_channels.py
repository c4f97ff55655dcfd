"""Ways to make, decode and take over the message: by all of them the same fields travel."""

import pytest

MESSAGES, CORE, CLIENT = (f"engine/{name}.py" for name in ("messages", "core", "client"))
MADE = "return Hello(length=self.whole.model.length, pool=cache.pool, block=cache.block)"
DECODED = "hello = msgspec.msgpack.decode(payload, type=Hello)"
TAKEN = "whole.cache.block = hello.block"
TAKE = "def take("
OF = """@classmethod
            def of(cls, whole: Whole):
                return cls(length=whole.model.length, pool=whole.cache.pool, block=whole.cache.block)

            length: int"""


def added(file, text):
    """The edit that imports something more."""
    first = {MESSAGES: "from dataclasses import dataclass", CLIENT: "import msgspec"}[file]
    return (file, first, f"{first}\n        {text}")


WAYS = {
    "positional": [(CORE, MADE, "return Hello(self.whole.model.length, cache.pool, cache.block)")],
    "a mapping": [(CORE, MADE, f"{MADE.replace('return Hello', 'said = dict')}; return Hello(**said)")],
    "a class method": [
        added(MESSAGES, "from engine.config import Whole"),
        (MESSAGES, "length: int", OF),
        (CORE, MADE, "return Hello.of(self.whole)"),
    ],
    "an annotated name": [(CLIENT, DECODED, "hello: Hello = pickle.loads(payload)")],
    "a decoder that is kept": [
        (CLIENT, DECODED, "hello = self.decoder.decode(payload)"),
        (CLIENT, "self.take(b", "self.decoder = msgspec.msgpack.Decoder(Hello)\n                self.take(b"),
    ],
    "a method that is given it": [
        (CLIENT, TAKEN, "self.more(hello)"),
        (CLIENT, TAKE, f"def more(self, hello: Hello):\n                self.{TAKEN}\n\n            {TAKE}"),
    ],
    "names in a loop": [
        (CLIENT, TAKEN, "[setattr(whole.cache, name, getattr(hello, name)) for name in ('block',)]"),
    ],
    "all of its fields": [
        (CLIENT, TAKEN, "[setattr(whole.cache, item.name, getattr(hello, item.name)) for item in fields(hello)]"),
    ],
    "its mapping": [(CLIENT, TAKEN, "whole.cache.__dict__.update(vars(hello))")],
    "another section": [
        added(CLIENT, "from dataclasses import replace"),
        (CLIENT, TAKEN, "whole.cache = replace(whole.cache, block=hello.block)"),
    ],
}


@pytest.mark.parametrize("way", WAYS)
def test_however_it_is_made_and_taken_over_what_it_brings_travels(found, way):
    assert found(*WAYS[way]).keys() == {"cache.stride"}


@pytest.mark.parametrize(
    ("way", "old", "new"),
    [
        ("a class method", (MESSAGES, ", block=whole.cache.block"), ""),
        ("a method that is given it", (CLIENT, "self.whole.cache.block = hello.block"), "pass"),
        ("another section", (CLIENT, "block=hello.block"), "quiet=hello.block"),
        ("names in a loop", (CLIENT, "in ('block',)"), "in ('quiet',)"),
    ],
)
def test_what_it_does_not_bring_is_found(found, way, old, new):
    assert found(*WAYS[way], (*old, new)).keys() == {"cache.block", "cache.stride"}
