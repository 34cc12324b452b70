"""Rules, and what they make of weights."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn
from torchao.quantization import IntxUnpackedToInt8Tensor
from torchao.quantization.quantize_.workflows.int4.int4_tensor import Int4Tensor

from executorch.exir import to_edge
from executorch.extension.llm.export.gguf import ExportableGGUFTensor
from executorch.extension.llm.export.int4 import ExportableInt4Tensor
from executorch.extension.llm.export.quant import (
    QuantConfig,
    QuantRecipe,
    QuantRule,
    dequantize_weight,
    fuse_along_output,
    identity,
    quantize_model,
    quantize_stream,
    quantize_weight,
    to_default,
    to_exportable,
)
from executorch.extension.llm.export.quant.convert import maybe_cast
from executorch.runtime import Runtime

FOUR = QuantConfig(4, 32, True, "min_max")
EIGHT = QuantConfig(8, 32, True, "min_max")


def test_the_first_rule_that_fits_the_whole_name_holds() -> None:
    recipe = QuantRecipe(
        [
            QuantRule(r".*norm.*", None),
            QuantRule(r".*\.v\.weight", EIGHT, layers={0, 11}),
            QuantRule(r"layers\..*weight", FOUR),
        ]
    )
    expected = {
        "layers.0.norm.weight": None,
        "layers.0.v.weight": EIGHT,
        "layers.11.v.weight": EIGHT,
        "layers.1.v.weight": FOUR,
        "layers.1.v.weight_scale": None,
        "head.v.weight": None,
    }
    assert {name: recipe.get_config(name) for name in expected} == expected


@pytest.mark.parametrize("bits", [4, 5, 6, 8])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("method", ["min_max", "hqq"])
def test_weights_are_within_half_a_step(bits: int, symmetric: bool, method: str) -> None:
    torch.manual_seed(0)
    weight = torch.randn(24, 96) + 0.5
    config = QuantConfig(bits, 32, symmetric, method)
    if method == "hqq" and not symmetric:
        with pytest.raises(ValueError, match="hqq is symmetric"):
            quantize_weight(weight, config)
        return
    stored = quantize_weight(weight, config)
    assert isinstance(stored, Int4Tensor if bits == 4 else IntxUnpackedToInt8Tensor)
    found = dequantize_weight(stored)
    groups = weight.reshape(24, 3, 32)
    if symmetric:
        step = 2 * groups.abs().amax(2) / (2**bits - 2)
    else:
        step = (groups.amax(2).clamp(min=0) - groups.amin(2).clamp(max=0)) / (2**bits - 1)
    error = (found.float() - weight).reshape(24, 3, 32).abs().amax(2)
    # Scales have 8 bits of mantissa; hqq may trade the largest numbers for the others.
    bound = step * (0.51 if method == "min_max" else 2) + groups.abs().amax(2) * 2**-8
    assert bool((error <= bound).all())


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (QuantConfig(3, 32, True, "min_max"), "Unsupported bits=3"),
        (QuantConfig(4, 32, True, "guess"), "Unknown quantization method"),
        (QuantConfig(4, 0, True, "min_max"), "groups of 0"),
        (QuantConfig(8, 40, True, "hqq"), "groups of 40"),
    ],
)
def test_other_settings_are_refused(config: QuantConfig, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quantize_weight(torch.zeros(4, 64), config)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 32, bias=False))
        self.register_buffer("positions", torch.arange(4))
        self.register_buffer("scratch", torch.zeros(2), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)  # type: ignore[no-any-return]


RECIPE = QuantRecipe(
    [QuantRule(r".*bias", None), QuantRule(r"layers\.0\..*", EIGHT), QuantRule(r".*", FOUR)]
)


def test_a_quantized_model_runs_as_a_program() -> None:
    torch.manual_seed(1)
    model = Model().eval().requires_grad_(False)
    state = quantize_model(model, RECIPE, dtype=torch.float32)
    assert list(state) == ["layers.0.weight", "layers.0.bias", "layers.1.weight", "positions"]
    kinds = [type(state[f"layers.{i}.weight"]) for i in range(2)]
    assert kinds == [IntxUnpackedToInt8Tensor, ExportableInt4Tensor]
    dense = Model().eval()
    dense.load_state_dict(
        state
        | {f"layers.{i}.weight": dequantize_weight(state[f"layers.{i}.weight"]) for i in (0, 1)}
    )
    state = {k: nn.Parameter(v, False) if v.is_floating_point() else v for k, v in state.items()}
    model.load_state_dict(state, assign=True)
    x = torch.randn(3, 64)
    program = to_edge(torch.export.export(model, (x,))).to_executorch()
    (found,) = Runtime.get().load_program(program.buffer).load_method("forward").execute((x,))
    torch.testing.assert_close(found, dense(x).detach(), atol=1e-4, rtol=1e-4)


def test_a_stream_is_quantized_one_weight_at_a_time() -> None:
    asked = []

    def pairs() -> Iterator[tuple[str, Tensor]]:
        for name in ("layers.1.weight", "layers.0.bias", "positions"):
            asked.append(name)
            value = torch.arange(4) if name == "positions" else torch.randn(32, 64)
            yield name, value

    recipe = QuantRecipe([QuantRule(r".*weight", FOUR)])
    stream = quantize_stream(pairs(), recipe)
    assert isinstance(next(stream)[1], Int4Tensor) and asked == ["layers.1.weight"]
    assert next(stream)[1].dtype == torch.bfloat16
    assert next(stream)[1].dtype == torch.int64


def blocks(n: int) -> Tensor:
    """Rows of 256 numbers of q4_k, with small scales."""
    raw = torch.randint(0, 256, (n, 144), dtype=torch.uint8)
    raw[:, :4] = torch.tensor([0.01, 0.01]).half().view(torch.uint8)
    return raw


def test_representations_keep_the_numbers() -> None:
    torch.manual_seed(2)
    four = quantize_weight(torch.randn(16, 64), FOUR)
    eight = quantize_weight(torch.randn(16, 64), EIGHT)
    assert type(to_exportable("", four)) is type(to_default("", four)) is ExportableInt4Tensor
    assert to_exportable("", eight) is to_default("", eight) is identity("", eight) is eight
    raw = blocks(4)
    unpacked = ExportableGGUFTensor.from_raw(raw, "q4_k").to_intx_unpacked_to_int8_tensor()
    assert to_exportable("", unpacked) is unpacked
    packed = to_default("", unpacked)
    assert type(packed) is ExportableInt4Tensor
    torch.testing.assert_close(
        packed.dequantize(torch.float32), unpacked.dequantize().float(), atol=2e-2, rtol=2e-2
    )
    assert maybe_cast(four, torch.float16) is four  # its `.to` would do nothing
    assert maybe_cast(packed, torch.float32).dtype == torch.float32
    with pytest.raises(TypeError, match="Cannot dequantize Tensor"):
        dequantize_weight(torch.zeros(2))


def test_weights_are_fused_row_by_row() -> None:
    torch.manual_seed(3)
    dense = [torch.randn(n, 64) for n in (16, 8)]
    assert torch.equal(fuse_along_output(dense), torch.cat(dense))
    assert fuse_along_output(dense[:1]) is dense[0]
    raws = [blocks(n) for n in (3, 2)]
    for parts in (
        [to_exportable("", quantize_weight(w, FOUR)) for w in dense],
        [quantize_weight(w, EIGHT) for w in dense],
        [ExportableGGUFTensor.from_raw(raw, "q4_k") for raw in raws],
    ):
        found = dequantize_weight(fuse_along_output(parts))
        assert torch.equal(found, torch.cat([dequantize_weight(p) for p in parts]))
    with pytest.raises(ValueError, match="no tensors"):
        fuse_along_output([])
    with pytest.raises(TypeError, match="IntxUnpackedToInt8Tensor"):
        fuse_along_output([dense[0], quantize_weight(dense[1], EIGHT)])
    with pytest.raises(TypeError, match="Int4Tensor cannot be fused"):
        fuse_along_output([quantize_weight(w, FOUR) for w in dense])
    with pytest.raises(ValueError, match="ggml_type"):
        fuse_along_output(
            [
                ExportableGGUFTensor.from_raw(raws[0], "q4_k"),
                ExportableGGUFTensor.from_raw(raws[1][:, :36].repeat(1, 1), "q4_0"),
            ]
        )
