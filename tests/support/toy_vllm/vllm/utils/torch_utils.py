STR_DTYPE_TO_TORCH_DTYPE = {"fp8": "uint8"}
