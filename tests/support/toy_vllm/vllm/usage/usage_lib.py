import enum


class UsageContext(enum.Enum):
    LLM_CLASS = 1
    OPENAI_API_SERVER = 2
