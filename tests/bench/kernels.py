"""Operators alone, float32: this project beside eager PyTorch and the machine's limits."""

import sys

from _compare import main
from _operators import KERNELS

EXAMPLE = "./dev bench kernels --only softmax,linear --quick --plot output/kernels.png"

if __name__ == "__main__":
    sys.exit(main(__doc__ or "", EXAMPLE, KERNELS, ["here", "eager"]))
