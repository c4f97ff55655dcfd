"""Loaded models that wait for whoever needs the same one next, in a process that makes many engines one after another.

A model is lent, not shared: it belongs to one borrower at a time, who gives it back untouched or keeps it. So nothing
but weights outlives an engine, and no two engines ever hold the same ones.
"""

from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from staticfire.engine.models.base import Decoder

Model = TypeVar("Model")


class Shelf(Generic[Model]):
    """Keeps the models that were given back last.

    Attributes:
        loads: Key of every model that had to be loaded, in order.
    """

    def __init__(self, capacity: int = 1) -> None:
        """Keep `capacity` models at most, those that are lent out not counted."""
        self.loads: list[Hashable] = []
        self._capacity = capacity
        self._kept: OrderedDict[Hashable, Model] = OrderedDict()
        self._lent: WeakKeyDictionary[Model, Hashable] = WeakKeyDictionary()

    def borrow(self, key: Hashable, load: Callable[[], Model]) -> Model:
        """Hand out the model of that key, loaded if none is kept; room for it is made before that."""
        model = self._kept.pop(key, None)
        if model is None:
            self._shrink(self._capacity - 1)
            model = load()
            self.loads.append(key)
        self._lent[model] = key
        return model

    def give_back(self, model: Model) -> None:
        """Keep a model that was borrowed here, and that nobody uses or has changed; any other is passed over."""
        key = self._lent.pop(model, None)
        if key is not None:
            self._kept[key] = model
            self._shrink(self._capacity)

    def clear(self) -> None:
        """Let every kept model go."""
        self._kept.clear()

    def _shrink(self, size: int) -> None:
        while len(self._kept) > size:
            self._kept.popitem(last=False)


_open: ContextVar["Shelf[Decoder] | None"] = ContextVar("shelf", default=None)


@contextmanager
def loading_from(shelf: "Shelf[Decoder]") -> Generator[None]:
    """Let the engines that are made here, in this process, borrow their models."""
    token = _open.set(shelf)
    try:
        yield
    finally:
        _open.reset(token)


def borrow(key: Callable[[], Hashable], load: Callable[[], "Decoder"]) -> "Decoder":
    """Load a model, or borrow it where a shelf is open."""
    shelf = _open.get()
    return load() if shelf is None else shelf.borrow(key(), load)


def stamp(folder: Path) -> Hashable:
    """The files of a checkpoint by name, size and times: equal while none was changed, as far as can be seen unread."""
    files = ((path.name, path.stat()) for path in sorted(folder.iterdir()) if path.is_file())
    found = tuple((name, file.st_size, file.st_mtime_ns, file.st_ctime_ns, file.st_ino) for name, file in files)
    return str(folder.resolve()), found
