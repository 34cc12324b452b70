"""The model of a configuration: its sizes, its weights, and inputs to trace it with."""

from __future__ import annotations

import json
import logging
import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.export import Dim

from executorch.examples.models.llama import huggingface, lora
from executorch.examples.models.llama.known_models import KNOWN_PARAMS
from executorch.examples.models.llama.llama_transformer import (
    Transformer,
    construct_transformer,
    initialize,
)
from executorch.examples.models.llama.model_args import ModelArgs
from executorch.exir.error import first_line
from executorch.extension.llm.export.config.llm_config import LlmConfig, LoraConfig, ModelType

log = logging.getLogger(__name__)


class Llama2Model:
    """Any model in the manner of Llama. Without a checkpoint its weights are random, the same every
    time."""

    def __init__(self, llm_config: LlmConfig | None = None) -> None:
        self.llm_config = config = llm_config or LlmConfig()
        _refuse_what_is_not_here(config)
        model, export = config.model, config.export
        state = load_checkpoint(config.base.checkpoint) if config.base.checkpoint else None
        params = self._params()
        self.args = args = ModelArgs.from_params(
            params,
            max_seq_len=export.max_seq_length,
            max_context_len=export.max_context_length,
            use_kv_cache=model.use_kv_cache,
            use_sdpa_with_kv_cache_op=model.use_kv_cache and model.use_sdpa_with_kv_cache,
            quantize_kv_cache=model.quantize_kv_cache,
            generate_full_logits=config.debug.generate_full_logits,
            enable_dynamic_shape=model.enable_dynamic_shape,
        )
        if state is not None:
            state = _named(state, args)
            # Checkpoints leave out what is tied.
            args.tie_word_embeddings = args.tie_word_embeddings or "output.weight" not in state
        self.model_ = construct_transformer(args)
        if state is None:
            log.warning("no checkpoint was given: the weights are random")
            initialize(self.model_)
        else:
            _load(self.model_, state)
        if config.base.lora_config is not None:
            self._add_adapter(config.base.lora_config)

    def _add_adapter(self, config: LoraConfig) -> None:
        lora.add_adapter(
            self.model_,
            lora.load_adapter(config, load_checkpoint(config.adapter_checkpoint), self.args),
        )
        if config.merge:
            lora.merge_adapter(self.model_)

    def _params(self) -> Mapping[str, Any]:
        base = self.llm_config.base
        file = Path(base.params) if base.params else None
        if file is None and base.checkpoint and (Path(base.checkpoint) / "config.json").exists():
            file = Path(base.checkpoint) / "config.json"
        if file is None:
            return KNOWN_PARAMS.get(base.model_class, {})
        try:
            found = json.loads(file.read_text())
        except json.JSONDecodeError as e:
            raise ValueError(f"{file}: {e}") from e
        if not isinstance(found, dict):
            raise ValueError(
                f"{file}: the sizes of a model were expected, not {type(found).__name__}"
            )
        return found

    def get_eager_model(self) -> Transformer:
        return self.model_

    def get_example_inputs(self) -> tuple[Any, ...]:
        """Several tokens where their number is dynamic, else one."""
        if not self.args.use_kv_cache:
            return (torch.ones(1, min(3, self.args.max_seq_len), dtype=torch.int64),)
        n = min(3, self.args.max_seq_len) if self.args.enable_dynamic_shape else 1
        return torch.ones(1, n, dtype=torch.int64), {"input_pos": torch.zeros(1, dtype=torch.int64)}

    def get_example_kwarg_inputs(self) -> None:
        return None

    def get_dynamic_shapes(self) -> Any:
        """For torch.export; none where the number of tokens is fixed."""
        if not self.args.enable_dynamic_shape or self.args.max_seq_len < 2:
            return None
        tokens = {1: Dim("tokens", min=1, max=self.args.max_seq_len)}
        return (tokens, {"input_pos": None}) if self.args.use_kv_cache else (tokens,)


LlamaModel = Llama2Model


def _refuse_what_is_not_here(config: LlmConfig) -> None:
    model, base = config.model, config.base
    absent = {
        "base.use_lora": base.use_lora,
        "base.preq_mode": base.preq_mode,
        "model.use_attention_sink": model.use_attention_sink,
        "model.output_prune_map": model.output_prune_map,
        "model.input_prune_map": model.input_prune_map,
        "model.static_quantize_kv_cache": model.static_quantize_kv_cache,
        "model.local_global_attention": model.local_global_attention,
        "model.use_moe_quantized_op": model.use_moe_quantized_op,
        "quantization.use_spin_quant": config.quantization.use_spin_quant,
        "quantization.use_qat": config.quantization.use_qat,
        "multimethod.methods": config.multimethod.methods,
    }
    given = [name for name, value in absent.items() if value]
    if given:
        raise ValueError(f"not supported: {', '.join(given)}")
    others = ("llama3_2_vision", "static_llama", "lfm2", "qwen3_5")
    if base.model_class.startswith(others):
        supported = [m.value for m in ModelType if not m.startswith(others)]
        raise ValueError(
            f"base.model_class={base.model_class} is not supported; there are "
            f"{', '.join(supported)}"
        )


def load_checkpoint(path: str | Path) -> dict[str, Tensor]:
    """A state dict from a .safetensors file, a folder of them, or a file of torch.save."""
    path = Path(path)
    if path.is_dir():
        files = sorted(path.glob("*.safetensors")) or sorted(path.glob("*.pth"))
        if not files:
            raise FileNotFoundError(f"{path}: no .safetensors or .pth file is in this folder")
        state: dict[str, Tensor] = {}
        for file in files:
            state.update(load_checkpoint(file))
        return state
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    loaded = _load_pickled(path)
    if isinstance(loaded, dict) and isinstance(loaded.get("model"), dict):
        loaded = loaded["model"]
    tensors = isinstance(loaded, dict) and all(isinstance(v, Tensor) for v in loaded.values())
    if not tensors:
        raise ValueError(f"{path}: a state dict of tensors was expected")
    return loaded


def _load_pickled(path: Path) -> Any:
    """A file of torch.save, mapped unless it has torch's older form, a pickle and no archive."""
    try:
        is_archive = zipfile.is_zipfile(path)
        return torch.load(path, map_location="cpu", weights_only=True, mmap=is_archive)
    except (RuntimeError, EOFError, pickle.UnpicklingError) as e:
        raise ValueError(
            f"{path}: a .safetensors file or a state dict of torch.save was expected: "
            f"{first_line(e)}"
        ) from e


def _named(state: dict[str, Tensor], args: ModelArgs) -> dict[str, Tensor]:
    """Under Meta's names."""
    if huggingface.is_huggingface(state):
        return huggingface.convert_state(state, args)
    return {name: value for name, value in state.items() if name != "rope.freqs"}


def _load(model: Transformer, state: dict[str, Tensor]) -> None:
    args = model.params
    if args.tie_word_embeddings and "output.weight" not in state:
        state = {**state, "output.weight": state["tok_embeddings.weight"]}
    own = {name: p for name, p in model.named_parameters(remove_duplicate=False)}
    missing = sorted(own.keys() - state.keys())
    unknown = sorted(state.keys() - own.keys())
    if missing or unknown:
        raise ValueError(
            f"checkpoint: {len(missing)} parameters are missing ({', '.join(missing[:3])}), "
            f"{len(unknown)} are unknown ({', '.join(unknown[:3])})"
        )
    for name, parameter in own.items():
        if parameter.shape != state[name].shape:
            raise ValueError(
                f"checkpoint: {name} has shape {list(state[name].shape)}; by its params the model "
                f"has {list(parameter.shape)}"
            )
        with torch.no_grad():
            parameter.copy_(state[name])
