"""Every case by its name."""

from _cases import BROWSER, MODELS, QUANTIZED
from _operators import KERNELS
from _streams import STREAMS

CASES = {case.name: case for case in (*MODELS, *QUANTIZED, *BROWSER, *KERNELS, *STREAMS)}
