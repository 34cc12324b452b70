from executorch.devtools.inspector import _inspector_utils as measures
from executorch.devtools.inspector.numerical_comparator.numerical_comparator_base import (
    MeasureComparator,
)


class MSEComparator(MeasureComparator):
    """Mean of squared differences."""

    name, measure = "MSE", staticmethod(measures.mse)
