"""Adapters: what they add to weights, beside them or merged, in files of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from executorch.examples.models.llama.export_llama_lib import build, export_llama
from executorch.examples.models.llama.model_args import ModelArgs
from executorch.exir._serialize._flat_tensor import FlatTensorSerializer
from executorch.extension.llm.export.config.settings import load_config
from executorch.runtime import Module

PARAMS = {
    "dim": 64,
    "n_layers": 2,
    "n_heads": 4,
    "n_kv_heads": 2,
    "vocab_size": 96,
    "multiple_of": 32,
}
RANK, ALPHA = 4, 12
TARGETS = ["q_proj", "v_proj", "o_proj", "up_proj"]
CACHED = ["model.use_kv_cache=True", "model.use_sdpa_with_kv_cache=True"]
PARTS = {"q_proj": "self_attn", "v_proj": "self_attn", "o_proj": "self_attn", "up_proj": "mlp"}


def save(path: Path, state: dict[str, Tensor]) -> None:
    from safetensors.torch import save_file

    save_file({name: value.contiguous() for name, value in state.items()}, path)


def checkpoint() -> dict[str, Tensor]:
    """As Hugging Face stores a model of PARAMS."""
    generator = torch.Generator().manual_seed(1)
    rows = {"q_proj": 64, "k_proj": 32, "v_proj": 32, "o_proj": 64}
    n = ModelArgs.from_params(PARAMS).hidden_dim
    state = {
        "model.embed_tokens.weight": (96, 64),
        "model.norm.weight": (64,),
        "lm_head.weight": (96, 64),
    }
    for i in range(2):
        layer = f"model.layers.{i}"
        state |= {f"{layer}.self_attn.{name}.weight": (size, 64) for name, size in rows.items()}
        state |= {f"{layer}.mlp.{name}.weight": (n, 64) for name in ("gate_proj", "up_proj")}
        state |= {f"{layer}.mlp.down_proj.weight": (64, n)}
        state |= {
            f"{layer}.{name}.weight": (64,)
            for name in ("input_layernorm", "post_attention_layernorm")
        }
    return {name: torch.randn(size, generator=generator) * 0.1 for name, size in state.items()}


def adapter(state: dict[str, Tensor], seed: int) -> dict[str, Tensor]:
    """As PEFT stores one for `state`."""
    generator = torch.Generator().manual_seed(seed)
    made = {}
    for i in range(2):
        for name in TARGETS:
            path = f"model.layers.{i}.{PARTS[name]}.{name}"
            outputs, inputs = state[f"{path}.weight"].shape
            made[f"base_model.model.{path}.lora_A.weight"] = torch.randn(
                RANK, inputs, generator=generator
            )
            made[f"base_model.model.{path}.lora_B.weight"] = (
                torch.randn(outputs, RANK, generator=generator) * 0.1
            )
    return made


def with_adapter(state: dict[str, Tensor], added: dict[str, Tensor]) -> dict[str, Tensor]:
    """What the weights are with it, by the formula."""
    found = dict(state)
    for name, b in added.items():
        if "lora_B" in name:
            path = name.removeprefix("base_model.model.").removesuffix(".lora_B.weight")
            a = added[name.replace("lora_B", "lora_A")]
            found[f"{path}.weight"] = state[f"{path}.weight"] + b @ a * (ALPHA / RANK)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "params.json").write_text(json.dumps(PARAMS))
    state = checkpoint()
    save(tmp_path / "model.safetensors", state)
    for seed in (2, 3):
        added = adapter(state, seed)
        save(tmp_path / f"adapter{seed}.safetensors", added)
        save(tmp_path / f"expected{seed}.safetensors", with_adapter(state, added))
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA, "target_modules": TARGETS}
    (tmp_path / "adapter_config.json").write_text(json.dumps(config | {"bias": "none"}))
    return tmp_path


def configure(folder: Path, *settings: str, weights: str = "model") -> Any:
    return load_config(
        None,
        [
            f"base.params={folder / 'params.json'}",
            f"base.checkpoint={folder / weights}.safetensors",
            f"export.output_dir={folder}",
            "export.output_name=model.pte",
            "export.max_seq_length=16",
            "export.max_context_length=40",
            *CACHED,
            *settings,
        ],
    )


def lora(folder: Path, seed: int = 2) -> list[str]:
    return [
        f"base.lora_config.adapter_checkpoint={folder}/adapter{seed}.safetensors",
        f"base.lora_config.adapter_config={folder}/adapter_config.json",
    ]


TOKENS = torch.tensor([[5, 17, 3, 90, 41]])


def expected(folder: Path, seed: int = 2, *settings: str) -> Tensor:
    model = build(configure(folder, *settings, weights=f"expected{seed}")).model.eval()
    with torch.no_grad():
        return model(TOKENS, {"input_pos": torch.tensor([0])})


def assert_near(found: Tensor, wanted: Tensor) -> None:
    """Sums of at most 192 products in float, in two orders."""
    torch.testing.assert_close(found, wanted, atol=2e-5 * float(wanted.abs().max()), rtol=0)


def ran(path: Path, data: Path | None = None) -> Tensor:
    found: Tensor = Module(path, data_path=data)(TOKENS, torch.tensor([0]))
    return found


@pytest.mark.parametrize("settings", [[], ["base.lora_config.merge=True"]])
def test_programs_compute_what_the_formula_says(settings: list[str], folder: Path) -> None:
    export_llama(configure(folder, *lora(folder), *settings))
    assert_near(ran(folder / "model.pte"), expected(folder))
    without = build(configure(folder)).model.eval()
    with torch.no_grad():
        plain = without(TOKENS, {"input_pos": torch.tensor([0])})
    assert (plain - expected(folder)).abs().max() > 0.1 * plain.abs().max()


def test_rows_are_put_into_the_order_of_the_model(folder: Path) -> None:
    """With Hugging Face's order of rotary pairs and with Meta's."""
    for halves in (False, True):
        (folder / "params.json").write_text(json.dumps({**PARAMS, "use_hf_rope": halves}))
        model = build(configure(folder, *lora(folder))).model.eval()
        with torch.no_grad():
            assert_near(model(TOKENS, {"input_pos": torch.tensor([0])}), expected(folder))


def test_settings_without_pefts_file_say_the_same(folder: Path) -> None:
    names = [
        f"base.lora_config.adapter_checkpoint={folder}/adapter2.safetensors",
        f"base.lora_config.lora_rank={RANK}",
        f"base.lora_config.lora_alpha={ALPHA}",
        f"base.lora_config.target_modules=[{', '.join(TARGETS)}]",
    ]
    model = build(configure(folder, *names)).model.eval()
    with torch.no_grad():
        assert_near(model(TOKENS, {"input_pos": torch.tensor([0])}), expected(folder))


def test_quantization_leaves_the_adapter_alone(folder: Path) -> None:
    settings = ["quantization.qmode=8da4w", "quantization.group_size=32"]
    config = configure(folder, *lora(folder), *settings)
    model = build(config).model.eval()
    export_llama(config)
    with torch.no_grad():
        found = model(TOKENS, {"input_pos": torch.tensor([0])})
    assert_near(ran(folder / "model.pte"), found)
    lora_a = model.layers[0].attention.wq.lora_a.weight
    assert type(lora_a) is torch.nn.Parameter and lora_a.dtype is torch.float32


def names_in(path: Path) -> set[str]:
    return set(FlatTensorSerializer().deserialize(path.read_bytes()).named_data)


def test_one_foundation_serves_several_adapters(folder: Path) -> None:
    """Weights of the model, and of adapters, in files of their own."""
    for seed in (2, 3):
        files = [f"export.lora_weights_file=lora{seed}.ptd"]
        export_llama(configure(folder, *lora(folder, seed), *files))
    assert names_in(folder / "lora2.ptd") == names_in(folder / "lora3.ptd")
    # The program is that of the second adapter: the file makes the difference.
    for seed in (2, 3):
        found = ran(folder / "model.pte", folder / f"lora{seed}.ptd")
        assert_near(found, expected(folder, seed))

    files = ["export.foundation_weights_file=foundation.ptd"]
    export_llama(configure(folder, *lora(folder), *files))
    assert_near(ran(folder / "model.pte", folder / "foundation.ptd"), expected(folder))

    export_llama(configure(folder, *lora(folder), *files, "export.lora_weights_file=lora.ptd"))
    both = names_in(folder / "foundation.ptd"), names_in(folder / "lora.ptd")
    assert both[1] == names_in(folder / "lora2.ptd")
    assert len(both[1]) == 2 * 2 * len(TARGETS) and not both[0] & both[1]
    assert (folder / "model.pte").stat().st_size < (folder / "foundation.ptd").stat().st_size / 4


def test_adapters_that_do_not_fit_are_refused(folder: Path) -> None:
    def refused(*settings: str, **changes: Any) -> str:
        path = folder / "adapter_config.json"
        before = path.read_text()
        path.write_text(json.dumps(json.loads(before) | changes))
        with pytest.raises(ValueError, match=".") as caught:
            build(configure(folder, *lora(folder), *settings))
        path.write_text(before)
        return str(caught.value)

    assert "has shape [4, 64]; by its rank" in refused(r=8)
    assert "4 are unknown (layers.0.attention.wq.lora_a" in refused(target_modules=TARGETS[1:])
    assert "4 parameters are missing" in refused(target_modules=[*TARGETS, "k_proj"])
    assert "target_modules name embed_tokens" in refused(target_modules=["embed_tokens"])
    assert "use_dora=True is not supported" in refused(use_dora=True)
    assert "the rank of the adapter is 0" in refused(r=0)
    assert "adapter_quant is not supported" in refused("base.lora_config.adapter_quant=8da4w")
    (folder / "adapter_config.json").write_text("{}")
    assert "r, lora_alpha, target_modules is missing" in refused()
    with pytest.raises(ValueError, match="needs base.lora_config without merge"):
        export_llama(configure(folder, "export.lora_weights_file=lora.ptd"))
