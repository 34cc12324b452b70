"""Every case by its name."""

from _cases import MODELS, QUANTIZED
from _operators import KERNELS
from _streams import STREAMS

CASES = {case.name: case for case in (*MODELS, *QUANTIZED, *KERNELS, *STREAMS)}
