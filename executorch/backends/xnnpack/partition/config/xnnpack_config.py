"""Kinds of computation that a partitioner can be restricted to."""

from enum import Enum


class ConfigPrecisionType(Enum):
    FP32 = 1
    STATIC_QUANT = 2
    DYNAMIC_QUANT = 3
