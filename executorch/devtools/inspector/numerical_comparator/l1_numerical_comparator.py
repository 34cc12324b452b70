from executorch.devtools.inspector import _inspector_utils as measures
from executorch.devtools.inspector.numerical_comparator.numerical_comparator_base import (
    MeasureComparator,
)


class L1Comparator(MeasureComparator):
    """Sum of absolute differences."""

    name, measure = "L1", staticmethod(measures.l1)
