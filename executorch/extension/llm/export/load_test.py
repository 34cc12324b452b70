"""Checkpoints of each form, into a model without values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict
from torchao.quantization import IntxUnpackedToInt8Tensor

from executorch.extension.llm.export.gguf_test import NUMBERS, file_of, random_blocks
from executorch.extension.llm.export.int4 import ExportableInt4Tensor
from executorch.extension.llm.export.load import (
    assign_state_dict,
    iter_checkpoint,
    load_checkpoint,
)
from executorch.extension.llm.export.quant import (
    QuantConfig,
    dequantize_weight,
    identity,
    quantize_weight,
)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = nn.Linear(64, 64), nn.Linear(64, 64, bias=False)
        self.register_buffer("positions", torch.zeros(3))


def empty() -> Model:
    with torch.device("meta"):
        return Model()


def state() -> dict[str, Tensor]:
    torch.manual_seed(0)
    return {k: torch.randn(v.shape) for k, v in Model().state_dict().items()}


def test_a_folder_of_files_is_loaded(tmp_path: Path) -> None:
    whole = state()
    names = sorted(whole)
    parts = {"a.safetensors": names[:2], "b.safetensors": names[2:]}
    for file, keys in parts.items():
        save_file({key: whole[key] for key in keys}, tmp_path / file)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {k: f for f, ks in parts.items() for k in ks}}))
    model = empty()
    load_checkpoint(str(tmp_path), model, dtype=torch.bfloat16)
    for name, value in model.state_dict().items():
        assert torch.equal(value, whole[name].bfloat16())
    assert not any(p.requires_grad for p in model.parameters())
    index.write_text(json.dumps({"weight_map": {"x": "../a.safetensors"}}))
    with pytest.raises(ValueError, match="other folders"):
        load_checkpoint(str(tmp_path), empty())


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "[" * 100000, '{"weight_map": []}', '{"weight_map": {"x": 1}}']
)
def test_a_damaged_index_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(text)
    with pytest.raises(ValueError, match="index.json.*weight_map"):
        load_checkpoint(str(tmp_path), empty())


def test_names_are_mapped_left_out_and_tied(tmp_path: Path) -> None:
    whole = state()
    path = tmp_path / "model.safetensors"
    save_file({f"m.{k}": v for k, v in whole.items() if k != "head.weight"}, path)
    options = {
        "key_map": lambda name: None if name.endswith("bias") else name.removeprefix("m."),
        "tie_map": {"layer.weight": ("head.weight", True)},
    }
    for at in (path, tmp_path):
        found = dict(iter_checkpoint(str(at), **options))
        assert sorted(found) == ["head.weight", "layer.weight", "positions"]
        assert torch.equal(found["head.weight"], whole["layer.weight"])
        assert found["head.weight"] is not found["layer.weight"]
    with pytest.raises(RuntimeError, match=r"Weight 'layer\.bias' not found"):
        load_checkpoint(str(path), empty(), **options)
    with pytest.raises(ValueError, match="is no checkpoint"):
        list(iter_checkpoint(str(tmp_path / "model.bin")))
    (tmp_path / "other").mkdir()
    with pytest.raises(FileNotFoundError, match="model.safetensors"):
        list(iter_checkpoint(str(tmp_path / "other")))


def test_quantized_weights_are_put_together_again(tmp_path: Path) -> None:
    whole = state()
    whole["layer.weight"] = quantize_weight(
        whole["layer.weight"], QuantConfig(8, 32, True, "min_max")
    )
    whole["head.weight"] = quantize_weight(
        whole["head.weight"], QuantConfig(4, 32, True, "min_max")
    )
    flat, metadata = flatten_tensor_state_dict(whole)
    path = tmp_path / "model.safetensors"
    save_file(flat, path, metadata=metadata)
    model = empty()
    load_checkpoint(str(path), model)
    assert isinstance(model.layer.weight.data, IntxUnpackedToInt8Tensor)
    assert isinstance(model.head.weight.data, ExportableInt4Tensor)
    for name in ("layer.weight", "head.weight"):
        found = dequantize_weight(model.get_parameter(name).data)
        assert torch.equal(found, dequantize_weight(whole[name]))
    raw = dict(iter_checkpoint(str(path), convert=identity))
    assert type(raw["head.weight"]) is type(whole["head.weight"])


def test_gguf_files_are_checkpoints(tmp_path: Path) -> None:
    torch.manual_seed(1)
    path = tmp_path / "model.gguf"
    bias = torch.randn(64)
    path.write_bytes(
        file_of(
            [
                ("layer.weight", [64, 64], NUMBERS["q8_0"], random_blocks("q8_0", 128)),
                ("layer.bias", [64], NUMBERS["f32"], bias.numpy().tobytes()),
                ("head.weight", [64, 64], NUMBERS["q4_0"], random_blocks("q4_0", 128)),
                ("positions", [3], NUMBERS["f32"], torch.ones(3).numpy().tobytes()),
            ]
        )
    )
    model = empty()
    load_checkpoint(str(path), model, dtype=torch.float32)
    assert torch.equal(model.layer.bias, bias) and model.layer.weight.dtype == torch.float32
    x = torch.randn(2, 64)
    expected = nn.functional.linear(x, dequantize_weight(model.layer.weight.data), bias)
    torch.testing.assert_close(model.layer(x), expected)


def test_a_state_dict_is_assigned() -> None:
    whole = state()
    model = empty()
    assign_state_dict(model, whole)
    assert all(torch.equal(v, whole[k]) for k, v in model.state_dict().items())
    del whole["head.weight"]
    with pytest.raises(RuntimeError, match=r"head\.weight"):
        assign_state_dict(empty(), whole)
