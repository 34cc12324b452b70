from __future__ import annotations

import pytest
import torch
from torch import nn

from executorch.exir.passes.lower_torchao_quantization import lower_torchao_quantization
from executorch.exir.testing import targets

pytest.importorskip("torchao")
from torchao.quantization import (  # noqa: E402
    Int8DynamicActivationInt8WeightConfig,
    Int8DynamicActivationIntxWeightConfig,
    Int8WeightOnlyConfig,
    quantize_,
)
from torchao.quantization.granularity import PerGroup  # noqa: E402

INPUTS = (torch.randn(2, 3, 64),)


def exported(module: nn.Module, *configs: object) -> torch.export.ExportedProgram:
    for config in configs:
        quantize_(module, config)
    return torch.export.export(module.eval(), INPUTS)


def dynamic_int4() -> Int8DynamicActivationIntxWeightConfig:
    return Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4,  # type: ignore[attr-defined]
        weight_granularity=PerGroup(32),
    )


def test_a_program_without_torchao_stays_the_same_object() -> None:
    program = exported(nn.Linear(64, 8))
    assert lower_torchao_quantization(program) is program


def test_parts_of_a_weight_become_parameters_and_the_given_program_keeps_its_own() -> None:
    program = exported(nn.Sequential(nn.Linear(64, 8)), dynamic_int4())
    before = program.graph_module.code
    lowered = lower_torchao_quantization(program)
    assert set(lowered.state_dict) == {
        *("0.weight.qdata", "0.weight.scale", "0.weight.zero_point", "0.bias")
    }
    assert all(type(t) is nn.Parameter for t in lowered.state_dict.values())
    placeholders = [n.name for n in lowered.graph.find_nodes(op="placeholder")]
    assert placeholders == [s.arg.name for s in lowered.graph_signature.input_specs]
    assert set(program.state_dict) == {"0.weight", "0.bias"}
    assert program.graph_module.code == before


def test_tokens_and_groups_are_named() -> None:
    lowered = lower_torchao_quantization(exported(nn.Linear(64, 8), dynamic_int4()))
    named = [t.removeprefix("quantized_decomposed.") for t in targets(lowered.graph_module)]
    assert [name for name in named if "getitem" not in name] == [
        "choose_qparams_per_token_asymmetric.default",
        "quantize_per_token.default",
        "dequantize_per_token.default",
        "dequantize_per_channel_group.default",
        "aten.linear.default",
    ]


def test_a_scaled_product_becomes_the_product_of_a_scaled_weight() -> None:
    linear = nn.Linear(64, 8)
    lowered = lower_torchao_quantization(exported(linear, Int8WeightOnlyConfig()))
    named = targets(lowered.graph_module)
    assert "quantized_decomposed.dequantize_per_channel_group.default" in named
    assert "aten.mul.Tensor" not in named
    lowered.graph_module.recompile()
    # 64 terms, each rounded in another order
    torch.testing.assert_close(
        lowered.module()(*INPUTS), linear(*INPUTS), rtol=0, atol=2 * 64 * 2**-23 * 8
    )


def test_an_integer_product_becomes_the_product_of_what_the_integers_stand_for() -> None:
    linear = nn.Linear(64, 8)
    program = exported(linear, Int8DynamicActivationInt8WeightConfig())
    lowered = lower_torchao_quantization(program)
    targets = [str(n.target) for n in lowered.graph.nodes]
    assert "aten._int_mm.default" in [str(n.target) for n in program.graph.nodes]
    assert "aten._int_mm.default" not in targets and "aten.mm.default" in targets
