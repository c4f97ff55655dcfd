"""The front end's hold on a data-parallel coordinator that it started. Imports no torch."""

import msgspec

from staticfire.engine.client.limits import Limits
from staticfire.engine.client.link import describe_end
from staticfire.engine.errors import EngineStartError
from staticfire.engine.process.child import Child
from staticfire.engine.process.coordinate import Posts
from staticfire.engine.wire import codec
from staticfire.engine.wire.faults import to_error
from staticfire.engine.wire.messages import Dead


class Coordinator:
    """A coordinator process.

    Attributes:
        child: The process.
        join_address: Where engines join.
        stats_address: Where it publishes; front ends learn it from their engines' ready responses.
    """

    def __init__(self, posts: Posts, limits: Limits, belongings: tuple[str, ...] = ()) -> None:
        """Start it and wait until it listens.

        Raises:
            EngineStartError: It died, took too long, or an address is in use.
        """
        entry = "staticfire.engine.process.coordinate:main"
        self.child = Child("coordinator", entry, msgspec.msgpack.encode(posts), belongings=belongings)
        try:
            answer = codec.bound(self.child.channel.receive(limits.hello_s))
        except EOFError as error:
            message = f"{describe_end(self.child)}\nIt was starting."
            self.child.kill()
            raise EngineStartError(message) from error
        except TimeoutError as error:
            self.child.kill()
            raise EngineStartError(
                f"{self.child.name} (pid {self.child.pid}) did not start to listen within {limits.hello_s:g} s"
            ) from error
        except BaseException:
            self.child.kill()
            raise
        if isinstance(answer, Dead):
            self.child.kill()
            raise to_error(answer.fault, EngineStartError)
        self.join_address = answer.join_address
        self.stats_address = answer.stats_address
