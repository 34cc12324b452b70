"""Language models of the `transformers` package, from a folder or its local cache."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from executorch.exir.error import first_line
from executorch.export.experts import replace_experts
from executorch.export.infer_inputs import example_tokens
from executorch.export.sources import Source, tokens_source

# Positions can be many more than a text on a device ever has, and each costs memory of a cache.
_LONGEST = 2048
# How configurations call the most positions.
_POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len")


class Logits(nn.Module):
    """tokens int64 [batch, length] -> logits [batch, length or 1, vocabulary] of a causal model."""

    def __init__(self, model: nn.Module, last_only: bool = False) -> None:
        super().__init__()
        self.model = model
        self.kept = int(last_only)  # 0: all

    def forward(self, tokens: Tensor) -> Tensor:
        found = self.model(input_ids=tokens, use_cache=False, logits_to_keep=self.kept)
        return found.logits  # type: ignore[no-any-return]


def transformers_source(
    name: str,
    random_weights: bool,
    max_length: int | None,
    last_only: bool,
    dtype: str | None = None,
) -> Source:
    """The causal language model in the folder `name`, or with that id in the local cache. Its
    weights have the type `dtype`, or "auto", that of the stored ones."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # nothing is downloaded
    try:
        import transformers
    except ImportError as error:
        raise ValueError(
            f"{name}: no such Python object, and models by folder or id need the package "
            "transformers (pip install transformers)"
        ) from error
    transformers.logging.set_verbosity_error()
    logging.getLogger("transformers").setLevel(logging.ERROR)
    config = _config(name)
    model = _model(name, config, random_weights, dtype or "float32").eval()
    return source_of(model, max_length, last_only)


def source_of(model: Any, max_length: int | None = None, last_only: bool = False) -> Source:
    """A causal language model of `transformers` as it is exported.

    Mixtures of experts in `model` are replaced by what a program can hold, and GPT-2's layers by
    what can be quantized.
    """
    from executorch.export.conv1d import replace_conv1d  # imports transformers

    config = model.config.get_text_config()
    # -1: no limit
    said = next((n for a in _POSITIONS if (n := getattr(config, a, None) or 0) > 0), None)
    if said is not None and max_length is not None and max_length > said:
        raise ValueError(f"--max-length {max_length}: the model has {said} positions")
    longest = max_length or min(said or _LONGEST, _LONGEST)
    inputs = (example_tokens(longest, config.vocab_size),)
    replace_experts(model)
    replace_conv1d(model)
    source = tokens_source(Logits(model, last_only), inputs, longest, config.vocab_size)
    generation = getattr(model, "generation_config", None)
    for method, attribute in (("get_bos_id", "bos_token_id"), ("get_eos_ids", "eos_token_id")):
        found = getattr(generation, attribute, None)
        found = getattr(config, attribute, None) if found is None else found
        ids = [found] if isinstance(found, int) else list(found or ())
        ids = [i for i in ids if 0 <= i < config.vocab_size]
        if ids:
            source.constant_methods[method] = ids if method == "get_eos_ids" else ids[0]
    return source


def _config(name: str) -> Any:
    from transformers import AutoConfig

    folder = Path(name)
    if folder.exists() and not (folder / "config.json").is_file():
        raise ValueError(f"{name}: expected a folder with a config.json, there is none")
    try:
        return AutoConfig.from_pretrained(name, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        if folder.exists():
            first = first_line(error)
            raise ValueError(f"{name}/config.json cannot be read: {first}") from error
        raise ValueError(
            f"{name}: no Python object (file.py:name, package.module:name), no folder, and no "
            "model with that id in the local cache of transformers; nothing is downloaded"
        ) from error


def _model(name: str, config: Any, random_weights: bool, dtype: str) -> Any:
    from transformers import AutoModelForCausalLM

    try:
        if random_weights:
            torch.manual_seed(0)
            stored = config.dtype or torch.float32
            made = stored if dtype == "auto" else getattr(torch, dtype)
            return AutoModelForCausalLM.from_config(config, dtype=made)
        return AutoModelForCausalLM.from_pretrained(
            name, config=config, local_files_only=True, dtype=dtype
        )
    except (OSError, ValueError) as error:
        first = first_line(error)
        if "Unrecognized configuration class" in first:
            first = f"{config.model_type} is no language model that generates text"
        elif not random_weights:
            first += "; --random-weights exports it without weights of its own"
        raise ValueError(f"{name}: {first}") from error
