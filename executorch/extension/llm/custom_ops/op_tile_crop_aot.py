"""The operator `preprocess::tile_crop`."""

import torch

from executorch.extension.llm.custom_ops import preprocess_custom_ops as preprocess_custom_ops

tile_crop = torch.ops.preprocess.tile_crop.default
