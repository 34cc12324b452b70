"""How far two values are apart; subclasses of NumericalComparatorBase may be users'."""

from executorch.devtools.inspector.numerical_comparator.l1_numerical_comparator import L1Comparator
from executorch.devtools.inspector.numerical_comparator.mse_numerical_comparator import (
    MSEComparator,
)
from executorch.devtools.inspector.numerical_comparator.numerical_comparator_base import (
    DebugHandle,
    IntermediateOutputMapping,
    NumericalComparatorBase,
)
from executorch.devtools.inspector.numerical_comparator.snr_numerical_comparator import (
    SNRComparator,
)

__all__ = [
    "DebugHandle",
    "IntermediateOutputMapping",
    "L1Comparator",
    "MSEComparator",
    "NumericalComparatorBase",
    "SNRComparator",
]
