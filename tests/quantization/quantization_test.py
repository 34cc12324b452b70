"""Quantized, exported and run, models give what torchao's reference computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from executorch.backends.transforms.duplicate_dynamic_quant_chain import (
    DuplicateDynamicQuantChainPass,
)
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
    XNNPACKQuantizer,
    get_symmetric_quantization_config,
)
from executorch.exir import to_edge
from executorch.runtime import Runtime
from tests.models.zoo import tolerance
from tests.quantization.models import Convolutions, Encoder, any_length, image, sentence

pytest.importorskip("torchao")
from torchao.quantization import (  # noqa: E402
    Int8DynamicActivationIntxWeightConfig,
    Int8WeightOnlyConfig,
    IntxWeightOnlyConfig,
    quantize_,
)
from torchao.quantization.granularity import PerAxis, PerGroup  # noqa: E402
from torchao.quantization.pt2e.quantize_pt2e import (  # noqa: E402
    convert_pt2e,
    prepare_pt2e,
    prepare_qat_pt2e,
)

# Terms of the longest path: sums over 3 * 9 + 9 + 12 + 256 values, or some 64s of the encoder.
ROUNDINGS = 1000


def pt2e(
    module: nn.Module, inputs: tuple, shapes: Any = None, fold: bool = True, **how: bool
) -> nn.Module:
    """`module` through capture, calibration or training, and conversion."""
    training = how.get("is_qat", False)
    captured = torch.export.export(module.train(training), inputs, dynamic_shapes=shapes).module()
    quantizer = XNNPACKQuantizer().set_global(
        get_symmetric_quantization_config(is_per_channel=True, **how)
    )
    prepared = (prepare_qat_pt2e if training else prepare_pt2e)(captured, quantizer)
    for _ in range(2):
        prepared(*inputs)
    return convert_pt2e(prepared, fold_quantize=fold)


def run(module: nn.Module, inputs: tuple, shapes: Any = None) -> tuple[Callable[..., Tensor], Any]:
    """The module's program, loaded: a function of the same arguments; and the program."""
    with torch.no_grad():
        exported = torch.export.export(module, inputs, dynamic_shapes=shapes)
    program = to_edge(exported).to_executorch()
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    return lambda *args: method.execute(list(args))[0], program


def check(found: Tensor, expected: Tensor, steps: float = 0.0) -> None:
    """Equal within rounding, and `steps` for values that rounding moved to the next integer."""
    rtol, atol = tolerance(ROUNDINGS, expected)
    torch.testing.assert_close(found, expected, rtol=rtol, atol=atol + steps)


def operators(program: Any) -> set[str]:
    plan = program.executorch_program.execution_plan[0]
    return {op.name.partition("::")[2] for op in plan.operators if "quantized" in op.name}


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("fold", [True, False])
@pytest.mark.parametrize("is_qat", [False, True])
def test_a_statically_quantized_cnn_runs(is_qat: bool, fold: bool) -> None:
    inputs = image()
    module = pt2e(Convolutions(), inputs, fold=fold, is_qat=is_qat)
    function, program = run(module, inputs)
    check(function(*inputs), module(*inputs))
    assert "quantize_per_channel" not in operators(program)
    assert "dequantize_per_channel" in operators(program)


def test_a_cnn_quantized_dynamically_runs_with_integers_in_its_products_alone() -> None:
    inputs = image()
    module = pt2e(Convolutions(), inputs, is_dynamic=True)
    chosen = [n for n in module.graph.nodes if "choose_qparams" in str(n.target)]
    assert len(chosen) == 3
    check(run(module, inputs)[0](*inputs), module(*inputs))


@pytest.mark.parametrize("how", [{}, {"is_dynamic": True}, {"is_dynamic": True, "is_qat": True}])
def test_an_encoder_with_integer_masks_keeps_its_length_free(how: dict[str, bool]) -> None:
    module = pt2e(Encoder(), sentence(), any_length(), fold=False, **how)
    DuplicateDynamicQuantChainPass()(module)
    function, program = run(module, sentence(), any_length())
    for length in (1, 7, 33):
        inputs = sentence(length)
        check(function(*inputs), module(*inputs))
    assert "quantize_per_channel" not in operators(program)


def test_quantization_keeps_an_encoder_near_its_float_result() -> None:
    """Three layers of products deep, eight bits leave some percent; a mask among the observed
    values would leave none of them."""
    float_module = Encoder().eval()
    inputs = sentence()
    expected = float_module(*inputs)
    for how in ({}, {"is_dynamic": True}):
        found = pt2e(float_module, inputs, **how)(*inputs)
        assert (found - expected).abs().max() < 0.05 * expected.abs().max()


def is_table(module: nn.Module, name: str) -> bool:
    return isinstance(module, nn.Embedding)


TOKENS = {"choose_qparams_per_token_asymmetric", "quantize_per_token", "dequantize_per_token"}
GROUPS = {"dequantize_per_channel_group"}


def int4_dynamic(granularity: Any) -> Any:
    return Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4, weight_granularity=granularity
    )


def weights(dtype: torch.dtype, granularity: Any) -> Any:
    return IntxWeightOnlyConfig(weight_dtype=dtype, granularity=granularity)


@pytest.mark.parametrize(
    ("config", "chosen", "expected"),
    [
        *((int4_dynamic(PerGroup(size)), None, TOKENS | GROUPS) for size in (32, 64)),
        (int4_dynamic(PerAxis(0)), None, TOKENS | GROUPS),
        (weights(torch.int4, PerGroup(32)), None, GROUPS),
        (weights(torch.int8, PerAxis(0)), None, GROUPS),
        (weights(torch.int4, PerGroup(32)), is_table, {"embedding_4bit"}),
        (weights(torch.int8, PerAxis(0)), is_table, {"embedding_byte"}),
        (Int8WeightOnlyConfig(), None, GROUPS),
    ],
    ids=["8da4w-32", "8da4w-64", "8da4w-row", "4w-32", "8w-row", "table4", "table8", "8w"],
)
def test_torchaos_quantization_runs(config: Any, chosen: Any, expected: set[str]) -> None:
    module = Encoder().eval()
    quantize_(module, config, *([chosen] if chosen else []))
    function, program = run(module, sentence(), any_length())
    for length in (1, 7, 33):
        inputs = sentence(length)
        with torch.no_grad():
            check(function(*inputs), module(*inputs))
    assert {name.partition(".")[0] for name in operators(program)} == expected


def test_groups_of_256_run() -> None:
    module = nn.Sequential(nn.Linear(512, 16), nn.ReLU()).eval()
    quantize_(module, int4_dynamic(PerGroup(256)))
    inputs = (torch.randn(3, 512),)
    with torch.no_grad():
        check(run(module, inputs)[0](*inputs), module(*inputs))


def test_a_table_of_four_bits_takes_half_a_byte_a_value() -> None:
    module = nn.Sequential(nn.Embedding(1024, 64)).eval()
    quantize_(module, weights(torch.int4, PerGroup(32)), is_table)
    program = run(module, (torch.zeros(3, dtype=torch.int64),))[1]
    values, scales = 1024 * 64 // 2, 1024 * 2 * 4
    assert values + scales <= len(program.buffer) < values + scales + 4096
