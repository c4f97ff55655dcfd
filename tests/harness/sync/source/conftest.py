"""A small engine in the shape of a large one: processes, executors with and without workers, a ready response."""

import textwrap

import pytest

from staticfire.harness.sync.source.audit import audit

FILES = {
    "engine/__init__.py": "",
    "engine/config.py": """
        from dataclasses import dataclass, field

        @dataclass
        class Cache:
            block: int = 16
            stride: int | None = None
            pool: int = 0
            quiet: int = 0

            def __post_init__(self):
                self.quiet = self.block

            def labels(self):
                return {key: str(value) for key, value in self.__dict__.items()}

        @dataclass
        class Model:
            length: int = 128

        @dataclass
        class Whole:
            cache: Cache = field(default_factory=Cache)
            model: Model = field(default_factory=Model)

        def make() -> Whole:
            return Whole()
        """,
    "engine/messages.py": """
        from dataclasses import dataclass

        @dataclass
        class Hello:
            length: int
            pool: int
            block: int
        """,
    "engine/worker.py": """
        from engine.config import Whole

        class Align:
            @classmethod
            def settle(cls, whole: Whole) -> None:
                cache = whole.cache
                cache.block = 80
                cache.stride = cache.block

        class Worker:
            def __init__(self, whole: Whole):
                Align.settle(whole)

            @staticmethod
            def main(*args, **kwargs):
                Worker(*args, **kwargs).loop()

            def loop(self):
                pass
        """,
    "engine/executor.py": """
        from abc import ABC, abstractmethod
        from multiprocessing import Process
        from engine.config import Whole
        from engine.worker import Align, Worker

        class Executor(ABC):
            def __init__(self, whole: Whole):
                self.whole = whole
                self._begin()

            @abstractmethod
            def _begin(self): ...

            def specs(self) -> list[int]:
                return []

        class Alone(Executor):
            def _begin(self):
                Align.settle(self.whole)

        class Many(Executor):
            def _begin(self):
                self.process = Process(target=Worker.main, kwargs={"whole": self.whole})
        """,
    "engine/core.py": """
        import msgspec
        from engine.config import Whole
        from engine.executor import Executor
        from engine.messages import Hello

        class Core:
            def __init__(self, whole: Whole, executor_class: type[Executor]):
                self.whole = whole
                self.executor = executor_class(whole)
                whole.cache.pool = sum(self.executor.specs())
                whole.cache.block = min(self.executor.specs())
                whole.model.length = 64

        class CoreProc(Core):
            @staticmethod
            def run(*args, **kwargs):
                CoreProc(*args, **kwargs).send()

            def send(self):
                return msgspec.msgpack.encode(self.hello())

            def hello(self) -> Hello:
                cache = self.whole.cache
                return Hello(length=self.whole.model.length, pool=cache.pool, block=cache.block)
        """,
    "engine/client.py": """
        from abc import ABC
        from multiprocessing import Process
        import msgspec
        from engine.config import Whole
        from engine.core import Core, CoreProc
        from engine.messages import Hello

        class Client(ABC):
            @staticmethod
            def make(whole: Whole) -> "Client":
                return Far(whole)

        class Near(Client):
            def __init__(self, whole: Whole):
                self.core = Core(whole, None)

        class Far(Client):
            def __init__(self, whole: Whole):
                self.whole = whole
                self.process = Process(target=CoreProc.run, kwargs={"whole": whole})
                self.take(b"")

            def take(self, payload: bytes) -> None:
                whole = self.whole
                hello = msgspec.msgpack.decode(payload, type=Hello)
                whole.model.length = min(whole.model.length, hello.length)
                pool = whole.cache.pool or 0
                pool += hello.pool
                whole.cache.pool = pool
                whole.cache.block = hello.block
        """,
    "engine/front.py": """
        from engine.client import Client
        from engine.config import Whole, make

        class Front:
            def __init__(self, whole: Whole):
                self.whole = whole
                self.client = Client.make(whole)
                self.show()

            def show(self):
                return self.whole.cache.labels()
        """,
}


@pytest.fixture
def edited(tmp_path):
    """The engine in a folder, some of its text replaced, as `(file, old, new)`."""

    def write(*edits):
        files = dict(FILES)
        for name, old, new in edits:
            assert old in files[name], (name, old)
            files[name] = files[name].replace(old, new)
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(textwrap.dedent(text))
        return tmp_path / "engine"

    return write


@pytest.fixture
def found(edited):
    """The findings of the engine after some edits, by field."""

    def look(*edits):
        return {finding.field: finding for finding in audit(edited(*edits), processes=1).findings}

    return look
