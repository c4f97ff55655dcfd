"""One file per model family: what its `config.json` keys mean. `registry` lists them."""
