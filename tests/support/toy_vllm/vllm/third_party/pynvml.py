class NVMLError(Exception):
    pass


NVML_P2P_STATUS_OK = 0


def nvmlInit():  # noqa: N802 -- the vendor's name
    raise NVMLError("Driver Not Loaded")
