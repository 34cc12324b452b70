from executorch.devtools.inspector import _inspector_utils as measures
from executorch.devtools.inspector.numerical_comparator.numerical_comparator_base import (
    MeasureComparator,
)


class SNRComparator(MeasureComparator):
    """Signal-to-noise ratio in dB, what was computed ahead of time being the signal."""

    name, measure = "SNR", staticmethod(measures.snr)
