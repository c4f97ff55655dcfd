"""Reading a configuration off a metrics page."""

import pytest

from staticfire.harness.errors import InputError
from staticfire.harness.sync.scrape import fetch, metrics_views

PAGE = """\
# HELP other:cache_config_info Of an engine of another name.
# TYPE other:cache_config_info gauge
other:cache_config_info{block_size="80",cache_dtype="float32",c="1.5",engine="0",on="True",odd="None",x="1e3"} 1.0
other:cache_config_info{block_size="16",cache_dtype="auto",engine="1"} 1.0
# TYPE other:num_requests_running gauge
other:num_requests_running{engine="0"} 3.0
"""
SECTIONS = {"runtime": ("block_size", "c"), "cache": ("block_size", "cache_dtype", "on", "odd")}


def test_labels_go_back_to_their_sections():
    zero, one = metrics_views(PAGE, SECTIONS)
    assert (zero.holder, one.holder) == ("metrics of engine 0", "metrics of engine 1")
    assert zero.fields == {
        "runtime.block_size": 80,
        "cache.cache_dtype": "float32",
        "runtime.c": 1.5,
        "cache.on": True,
        "cache.odd": "None",  # a label of that text is a fault, and must not be taken for a value that is absent
        "metrics.x": 1000.0,
    }
    assert one.fields == {"runtime.block_size": 16, "cache.cache_dtype": "auto"}


def test_a_page_that_is_not_there_is_one_error():
    with pytest.raises(InputError, match="no metrics there"):
        fetch("http://127.0.0.1:9/metrics")
