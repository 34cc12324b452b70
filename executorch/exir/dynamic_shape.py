from enum import Enum


class DynamicMemoryPlanningMode(Enum):
    """How memory of tensors with symbolic extents is planned."""

    UPPER_BOUND = 0
    SYMBOLIC = 1
