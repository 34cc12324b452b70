from enum import IntEnum


class DynamicMemoryPlanningMode(IntEnum):
    """How memory of tensors with symbolic extents is planned."""

    UPPER_BOUND = 0
    SYMBOLIC = 1
