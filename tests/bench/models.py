"""Whole models, float32: this project beside upstream, eager PyTorch, ONNX Runtime, OpenVINO."""

import sys

from _cases import MODELS
from _compare import main

EXAMPLE = "./dev bench models --only gpt2 --tokens 1,128 --json output/models.jsonl"
SIDES = ["here", "upstream", "upstream XNNPACK", "eager", "ONNX Runtime", "OpenVINO"]

if __name__ == "__main__":
    sys.exit(main(__doc__ or "", EXAMPLE, MODELS, SIDES))
