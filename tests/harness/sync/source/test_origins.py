"""Whose object is read: only what an engine's configuration holds is news to anybody."""

import textwrap

import pytest

CONFIG, WORKER, FRONT = (f"engine/{name}.py" for name in ("config", "worker", "front"))

SECTION = """        @dataclass
        class Store:
            uri: str | None = None

            def plain(self):
                return {key: str(value) for key, value in self.__dict__.items()}

            @property
            def place(self):
                return self.uri

            def deeper(self):
                return shown(self)

        def shown(store: Store):
            return store.uri

"""
WHOLE = "        @dataclass\n        class Whole:\n"
STORE = [
    (CONFIG, WHOLE, SECTION + WHOLE + "            store: Store = field(default_factory=Store)\n"),
    (WORKER, "cache.block = 80", "cache.block = 80; whole.store.uri = str(cache.block)"),
    (FRONT, "import Whole, make", "import Store, Whole, make"),
]
"""A section of which a worker writes a field, and which reads it itself in several ways."""


def front(text):
    """The front end's file with more code at its end."""
    end = "                return self.whole.cache.labels()\n"
    return [*STORE, (FRONT, end, end + textwrap.indent(f"\n{text}\n", " " * 8))]


READS = ["store.uri", "store.plain()", "store.deeper()", "store.place", "asdict(store)", "store.__dict__"]


@pytest.mark.parametrize("read", READS)
def test_a_parameter_of_a_section_s_class_that_nobody_hands_in_is_no_reader(found, read):
    text = f"def save(whole: Whole, store: Store):\n    front = Front(whole)\n    return front, {read}"
    assert "store.uri" not in found(*front(text))


SAVER = """
class Saver:
    def __init__(self, whole: Whole, store: Store):
        self.store = store
        self.front = Front(whole)

    def save(self):
        return {}
"""


@pytest.mark.parametrize("read", READS)
def test_nor_is_what_keeps_such_a_parameter(found, read):
    asked = read.replace("store", "self.store", 1) if "(store)" not in read else "asdict(self.store)"
    text = SAVER.format(asked)
    assert "store.uri" not in found(*front(text))


@pytest.mark.parametrize("read", READS)
def test_nor_is_one_that_the_front_end_makes_for_itself(found, read):
    text = f"def save(whole: Whole):\n    front = Front(whole)\n    store = Store(uri='here')\n    return front, {read}"
    assert "store.uri" not in found(*front(text))


HELD = {
    "handed": """
def save(whole: Whole):
    front = Front(whole)
    return use(whole.store)

def use(store: Store):
    {}
""",
    "handed twice": """
def save(whole: Whole):
    front = Front(whole)
    use(store=whole.store)

def use(store: Store):
    return more(store)

def more(store: Store):
    {}
""",
    "handed in a list": """
def save(whole: Whole):
    front = Front(whole)
    use(*[whole.store])

def use(store: Store):
    {}
""",
    "under another name": """
def save(whole: Whole):
    front = Front(whole)
    store = whole.store
    {}
""",
    "put in": """
def save(store: Store):
    front = Front(Whole(store=store))
    {}
""",
    "made and put in": """
def save():
    store = Store()
    front = Front(Whole(store=store))
    {}
""",
    "to a method": """
class Show:
    def __init__(self, whole: Whole):
        self.front = Front(whole)
        store = whole.store
        self.show(store)

    def show(self, store: Store):
        {}
""",
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("way", HELD)
def test_what_the_configuration_holds_is_read_however_it_comes(found, way, read):
    assert "store.uri" in found(*front(HELD[way].format(read)))


USED = """
def save(whole: Whole, store: Store):
    front = Front(whole)
    use(store)
    use(Store())
    {}

def use(store: Store):
    return store.uri
"""


def test_it_is_enough_that_one_caller_hands_in_the_engine_s(found):
    assert "store.uri" not in found(*front(USED.format("")))
    assert "store.uri" in found(*front(USED.format("use(whole.store)")))
