import os
from types import SimpleNamespace

current_platform = SimpleNamespace(device_type="" if os.environ.get("TOY_FAULT") == "no-device" else "cpu")
