"""Lines of keys in TOML text."""

import tomllib

from staticfire.harness.matrix.locate import Lines

TEXT = '''\
# [axes] in a comment
[matrix]
name = "a = [b]"
description = """
[axes]
not = "a key"
"""

[axes]
one = [
    "x",  # ] in a comment
    "]",
]
two = [1, 2]

[[constraint]]
when = { one = "x", two = 1 }
reason = 'r [[constraint]]'

[[constraint]]
reason = "s"
[constraint.when]
two = 2
"quoted key" = 1
three.deep = 4
'''


def test_keys_headers_and_tables_in_arrays():
    tomllib.loads(TEXT)
    lines = Lines(TEXT)
    assert lines.of("matrix") == 2
    assert lines.of("matrix", "name") == 3
    assert lines.of("matrix", "description") == 4
    assert lines.of("axes") == 9
    assert lines.of("axes", "one") == 10
    assert lines.of("axes", "two") == 14
    assert lines.of("constraint", 0) == 16
    assert lines.of("constraint", 0, "when") == 17
    assert lines.of("constraint", 0, "when", "two") == 17
    assert lines.of("constraint", 0, "reason") == 18
    assert lines.of("constraint", 1) == 20
    assert lines.of("constraint", 1, "when") == 22
    assert lines.of("constraint", 1, "when", "two") == 23
    assert lines.of("constraint", 1, "when", "quoted key") == 24
    assert lines.of("constraint", 1, "when", "three", "deep") == 25


def test_an_unknown_path_falls_back_to_its_known_beginning():
    lines = Lines(TEXT)
    assert lines.of("axes", "nowhere") == 9
    assert lines.of("nowhere") == 1


def test_a_key_inside_an_array_of_inline_tables_spread_over_lines():
    text = "x = [\n  { one = 1 },\n  { two = 2 },\n]\ny = 1\n"
    assert Lines(text).of("x", 1, "two") == 3
