"""Quantized models: this project beside upstream's XNNPACK and ONNX Runtime, eager in float32."""

import sys

from _cases import QUANTIZED
from _compare import main

EXAMPLE = "./dev bench quantized --only int8 --tokens 1,128 --json output/quantized.jsonl"
SIDES = ["here", "upstream XNNPACK", "upstream (our file)", "eager", "ONNX Runtime"]

if __name__ == "__main__":
    sys.exit(main(__doc__ or "", EXAMPLE, QUANTIZED, SIDES))
