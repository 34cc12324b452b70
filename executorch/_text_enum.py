"""enum.StrEnum, which Python 3.10 has not."""

from enum import Enum


class StrEnum(str, Enum):
    """Members are their values, in text as well."""

    __str__ = str.__str__
    __format__ = str.__format__
