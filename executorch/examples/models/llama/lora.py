"""Low-rank adapters of linear layers (LoRA, arXiv:2106.09685): y = W x + scale * B (A x).

Adapters are those of PEFT (adapter_config.json, adapter_model.safetensors) or torchtune: a .pt or
.safetensors file under Meta's names, `layers.0.attention.wq.lora_a.weight`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from executorch.examples.models.llama import huggingface
from executorch.examples.models.llama.model_args import ModelArgs
from executorch.extension.llm.export.config.llm_config import LoraConfig

# Layers by the names that adapters' configurations have for them.
_LAYERS = {
    "q_proj": "attention.wq",
    "k_proj": "attention.wk",
    "v_proj": "attention.wv",
    "o_proj": "attention.wo",
    "output_proj": "attention.wo",
    "gate_proj": "feed_forward.w1",
    "down_proj": "feed_forward.w2",
    "up_proj": "feed_forward.w3",
}
# Settings of PEFT that change what is computed, and the values that leave it as it is here.
_ABSENT: dict[str, tuple[Any, ...]] = {
    "use_dora": (None, False),
    "lora_bias": (None, False),
    "bias": (None, "none"),
    "fan_in_fan_out": (None, False),
    "modules_to_save": (None, []),
    "rank_pattern": (None, {}),
    "alpha_pattern": (None, {}),
    "layers_to_transform": (None, []),
    "trainable_token_indices": (None, []),
    "peft_type": (None, "LORA"),
}


class LoraLinear(nn.Linear):
    """A linear layer with an adapter beside it. What changes the layer's own weight, such as
    quantization, leaves the adapter alone.

    lora_a  [rank, inputs], lora_b  [outputs, rank], as linear layers
    """

    def __init__(self, linear: nn.Linear, rank: int, scale: float) -> None:
        super().__init__(
            linear.in_features, linear.out_features, linear.bias is not None, device="meta"
        )
        self.weight, self.bias = linear.weight, linear.bias
        self.lora_a = nn.Linear(linear.in_features, rank, bias=False)
        self.lora_b = nn.Linear(rank, linear.out_features, bias=False)
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + self.lora_b(self.lora_a(x)) * self.scale


@dataclass
class Adapter:
    """rank      of all its layers
    scale     of what they add
    layers    names such as "attention.wq"
    state     parameters under Meta's names
    """

    rank: int
    scale: float
    layers: list[str]
    state: dict[str, Tensor]


def load_adapter(config: LoraConfig, state: Mapping[str, Tensor], args: ModelArgs) -> Adapter:
    """The adapter of a configuration; `state`: its checkpoint. ValueError for what it has and this
    has not."""
    rank, alpha = config.lora_rank, float(config.lora_alpha)
    targets: Any = config.target_modules
    rank_stabilized = False
    if config.adapter_config is not None:
        found = _peft_config(Path(config.adapter_config))
        rank, alpha, targets = found["r"], float(found["lora_alpha"]), found["target_modules"]
        rank_stabilized = bool(found.get("use_rslora"))
    if config.adapter_quant is not None:
        raise ValueError(
            "base.lora_config.adapter_quant is not supported: adapters stay as they are"
        )
    if not isinstance(rank, int) or rank < 1:
        raise ValueError(f"the rank of the adapter is {rank!r}; expected 1 or more")
    if not isinstance(targets, list) or not targets:
        raise ValueError(f"the adapter's target_modules are {targets!r}; expected a list of layers")
    unknown = [name for name in targets if name not in _LAYERS]
    if unknown:
        raise ValueError(
            f"the adapter's target_modules name {', '.join(map(str, unknown))}; there are "
            f"{', '.join(_LAYERS)}"
        )
    layers = [_LAYERS[name] for name in targets]
    scale = alpha / (math.sqrt(rank) if rank_stabilized else rank)
    return Adapter(rank, scale, layers, _named(state, args))


def _peft_config(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except json.JSONDecodeError as e:
        raise ValueError(f"{path}: {e}") from e
    missing = [name for name in ("r", "lora_alpha", "target_modules") if name not in found]
    if missing:
        raise ValueError(f"{path}: {', '.join(missing)} is missing")
    for name, plain in _ABSENT.items():
        if found.get(name) not in plain:
            raise ValueError(f"{path}: {name}={found[name]!r} is not supported")
    return dict(found)


def _named(state: Mapping[str, Tensor], args: ModelArgs) -> dict[str, Tensor]:
    """Under Meta's names. The rows of B for queries and keys go into the order that the model's
    own rows have."""
    found: dict[str, Tensor] = {}
    for name, value in state.items():
        if not name.startswith("base_model.model."):
            found[name] = value
            continue
        plain = name.removeprefix("base_model.model.").replace(".default.", ".")
        path, _, rest = plain.rpartition(".lora_")
        layer = huggingface.layer_name(path)
        if rest not in ("A.weight", "B.weight") or layer is None:
            raise ValueError(f"adapter: {name} belongs to no linear layer of a model like Llama")
        if rest == "B.weight" and not args.use_hf_rope and layer.endswith((".wq", ".wk")):
            value = huggingface.neighbours(value, args)
        found[f"{layer}.lora_{rest.lower()}"] = value
    return found


def add_adapter(model: nn.Module, adapter: Adapter) -> None:
    """Puts the adapter beside the layers of `model`, in place. ValueError where its checkpoint has
    parameters for other layers, or of other sizes."""
    expected: dict[str, nn.Parameter] = {}
    for name, module in list(model.named_modules()):
        if not isinstance(module, nn.Linear) or not name.endswith(tuple(adapter.layers)):
            continue
        lora = LoraLinear(module, adapter.rank, adapter.scale)
        model.set_submodule(name, lora)
        expected[f"{name}.lora_a.weight"] = lora.lora_a.weight
        expected[f"{name}.lora_b.weight"] = lora.lora_b.weight
    missing = sorted(expected.keys() - adapter.state.keys())
    unknown = sorted(adapter.state.keys() - expected.keys())
    if missing or unknown:
        raise ValueError(
            f"adapter: {len(missing)} parameters are missing ({', '.join(missing[:3])}), "
            f"{len(unknown)} are unknown ({', '.join(unknown[:3])})"
        )
    for name, parameter in expected.items():
        if parameter.shape != adapter.state[name].shape:
            raise ValueError(
                f"adapter: {name} has shape {list(adapter.state[name].shape)}; by its rank and the "
                f"model's params expected {list(parameter.shape)}"
            )
        with torch.no_grad():
            parameter.copy_(adapter.state[name])


def merge_adapter(model: nn.Module) -> None:
    """Adds W += scale * B A in every layer with an adapter, which then is a plain one, in place."""
    for name, module in list(model.named_modules()):
        if not isinstance(module, LoraLinear):
            continue
        plain = nn.Linear(
            module.in_features, module.out_features, module.bias is not None, device="meta"
        )
        with torch.no_grad():
            added = module.lora_b.weight.double() @ module.lora_a.weight.double() * module.scale
            weight = (module.weight.double() + added).to(module.weight.dtype)
        plain.weight, plain.bias = nn.Parameter(weight, requires_grad=False), module.bias
        model.set_submodule(name, plain)


def is_adapter(name: str) -> bool:
    """Whether a parameter, or a node of a graph that stands for it, is an adapter's."""
    return "lora_a" in name or "lora_b" in name
