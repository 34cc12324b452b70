"""Operators that memory bounds, in all storage types, beside eager PyTorch and the bandwidth.

The limit counts every byte read and every byte written once, at the speed at which the machine
reads: what a store fetches before it writes is a loss.
"""

import sys

from _compare import main
from _streams import STREAMS

EXAMPLE = "./dev bench streams --only softmax,gelu --quick --json output/streams.jsonl"

if __name__ == "__main__":
    sys.exit(main(__doc__ or "", EXAMPLE, STREAMS, ["here", "eager"]))
