class AttentionBackend:
    sizes = (16,)
    heads = ()
    dtypes = ("bfloat16", "float16")

    @classmethod
    def get_name(cls):
        return cls.__name__.removesuffix("Backend").upper()

    @classmethod
    def validate_configuration(cls, head_size, dtype, block_size):
        reasons = []
        if cls.heads and head_size not in cls.heads:
            reasons.append("head_size not supported")
        if dtype not in cls.dtypes:
            reasons.append("dtype not supported")
        if block_size is not None and all(block_size % size for size in cls.sizes):
            reasons.append("block_size not supported")
        return reasons
