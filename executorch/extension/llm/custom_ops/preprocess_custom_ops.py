"""Operators on images in front of a model, `torch.ops.preprocess`."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.library import Library

from executorch.extension.llm.custom_ops import eager
from executorch.extension.llm.custom_ops.library import define

preprocess_op_lib = Library("preprocess", "FRAGMENT")

# Models take at most so many tiles.
MAX_NUM_TILES = 4


def tile_crop(input: Tensor, tile_size: int) -> Tensor:
    """How many tiles there are is known when the program runs, up to MAX_NUM_TILES."""
    n_tiles = torch.library.get_ctx().new_dynamic_size(min=0, max=MAX_NUM_TILES)
    return input.new_empty([n_tiles, input.size(0), tile_size, tile_size])


define(preprocess_op_lib, "tile_crop(Tensor input, int tile_size)", eager.tile_crop, tile_crop)
