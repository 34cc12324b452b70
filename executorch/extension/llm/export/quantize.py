"""Weights of a model quantized before it is exported, by the short names that scripts use.

name    linear weights             activations     embeddings
4w      int4 in groups of 32       float           the same
8w      int8, a scale for a row    float           the same
8da4w   int4 in groups of 32       int8, dynamic
8da8w   int8, a scale for a row    int8, dynamic
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch

from executorch.exir._warnings import experimental

_log = logging.getLogger(__name__)

_BITS = {"4w": torch.int4, "8w": torch.int8, "8da4w": torch.int4, "8da8w": torch.int8}
_LINEAR, _EMBEDDING = ("4w", "8w", "8da4w", "8da8w"), ("4w", "8w")


@experimental("quantize_model_ is experimental and may change without notice.")
def quantize_model_(
    module: torch.nn.Module,
    qlinear_config: str | None = None,
    qlinear_group_size: int | None = None,
    qlinear_packing_format: str | None = None,
    qembedding_config: str | None = None,
    qembedding_group_size: int | None = None,
    tie_word_embeddings: bool = False,
    skip_incompatible_shapes: bool = False,
) -> None:
    """Quantize the linears and embeddings of `module`, in place.

    qlinear_group_size, qembedding_group_size  elements of a row that share a scale; 0: all of them
    qlinear_packing_format     one of torchao's for "4w", such as "tile_packed_to_4d"
    tie_word_embeddings        `lm_head` gets the weight of `model.embed_tokens`, if both are
                               quantized alike
    skip_incompatible_shapes   leave layers whose rows are no whole number of groups as they are,
                               which are errors otherwise
    """
    from torchao.quantization import quantize_

    kinds = (
        (torch.nn.Embedding, qembedding_config, qembedding_group_size, _EMBEDDING, None),
        (torch.nn.Linear, qlinear_config, qlinear_group_size, _LINEAR, qlinear_packing_format),
    )
    for kind, name, _, names, _ in kinds:  # nothing is changed where one name is wrong
        if name and name not in names:
            what = f"q{kind.__name__.lower()}_config"
            raise ValueError(f"Unsupported {what}: {name!r}; known are {', '.join(names)}")
    for kind, name, group_size, _, packing in kinds:
        if not name:
            continue
        if group_size is None:
            group_size = 32 if _BITS[name] is torch.int4 else 0
        fits = _filter(kind, name, group_size, skip_incompatible_shapes)
        quantize_(module, _config(name, group_size, packing), filter_fn=fits)
    if tie_word_embeddings and qlinear_config and qlinear_config == qembedding_config:
        embedding = getattr(getattr(module, "model", None), "embed_tokens", None)
        if embedding is not None and hasattr(module, "lm_head"):
            module.lm_head.weight = embedding.weight


def _config(name: str, group_size: int, packing: str | None) -> Any:
    """torchao's configuration. Zero points are 0, scales those that fit the weights best."""
    from torchao.quantization import (
        Int4WeightOnlyConfig,
        Int8DynamicActivationIntxWeightConfig,
        IntxWeightOnlyConfig,
    )
    from torchao.quantization.granularity import PerAxis, PerGroup

    if name == "4w" and packing:
        return Int4WeightOnlyConfig(
            group_size=group_size,
            int4_packing_format=packing,
            int4_choose_qparams_algorithm="hqq",
        )
    granularity = PerGroup(group_size) if group_size else PerAxis(0)
    if name.startswith("8da"):
        return Int8DynamicActivationIntxWeightConfig(
            weight_dtype=_BITS[name],
            weight_granularity=granularity,
            intx_choose_qparams_algorithm="hqq_scale_only",
        )
    return IntxWeightOnlyConfig(
        weight_dtype=_BITS[name],
        granularity=granularity,
        intx_choose_qparams_algorithm="hqq_scale_only",
    )


def _filter(
    kind: type[torch.nn.Module], name: str, group_size: int, skip: bool
) -> Callable[[torch.nn.Module, str], bool]:
    def fits(module: torch.nn.Module, path: str) -> bool:
        if not isinstance(module, kind):
            return False
        shape = list(module.weight.shape)
        if group_size == 0 or shape[-1] % group_size == 0:
            return True
        problem = f"{path}: weight {shape}: {name} needs rows of whole groups of {group_size}"
        if not skip:
            raise RuntimeError(f"{problem}; skip_incompatible_shapes=True leaves it as it is")
        _log.warning("%s; left as it is", problem)
        return False

    return fits
