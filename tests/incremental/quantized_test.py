"""Quantized models become incremental as they are, for operators and for XNNPACK."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram, export

from executorch.exir import NotCausalError, make_incremental, to_edge_transform_and_lower
from executorch.exir.incremental.quantization import quantize_by_token
from executorch.runtime import Runtime
from tests.incremental.incremental_test import first, made, texts
from tests.incremental.models import MOST_TOKENS, VOCABULARY, Model

# Of the largest logit: the step of an 8-bit range. Where sums are rounded in another way, a number
# may become the next integer.
TOLERANCE = 1 / 127


def tokens() -> tuple[Tensor]:
    return (torch.randint(0, VOCABULARY, (1, 9), generator=torch.Generator().manual_seed(0)),)


SHAPES = ({1: Dim("tokens", max=MOST_TOKENS)},)


def pt2e(is_dynamic: bool) -> nn.Module:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )

    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=is_dynamic)
    captured = export(made(Model), tokens(), dynamic_shapes=SHAPES).module()
    prepared = prepare_pt2e(captured, XNNPACKQuantizer().set_global(config))
    prepared(*tokens())
    return convert_pt2e(prepared)


def int8() -> nn.Module:
    return pt2e(True)


def static_int8() -> nn.Module:
    return pt2e(False)


def int4() -> nn.Module:
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
    from torchao.quantization.granularity import PerGroup

    model = made(Model)
    config = Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4, weight_granularity=PerGroup(32)
    )
    quantize_(model, config)
    return model


def int8_weights() -> nn.Module:
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    model = made(Model)
    quantize_(model, Int8WeightOnlyConfig())
    return model


def exported(make: Callable[[], nn.Module]) -> ExportedProgram:
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return export(make(), tokens(), dynamic_shapes=SHAPES)


def check(program: ExportedProgram, run: Callable[[Tensor], Tensor]) -> None:
    stateless = quantize_by_token(program).module()
    for ids in texts(25):
        given = torch.tensor([ids])
        expected, found = first(stateless(given)), first(run(given))
        assert found.shape == expected.shape
        assert (found - expected).abs().max() <= TOLERANCE * expected.abs().max(), ids


@pytest.mark.parametrize("make", [int8, int4, int8_weights], ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["eager", "portable", "xnnpack"])
def test_results_are_those_of_the_quantized_model(
    make: Callable[[], nn.Module], backend: str
) -> None:
    program = exported(make)
    incremental = make_incremental(program)
    if backend == "eager":
        check(program, incremental.module())
        return
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import (
        XnnpackDynamicallyQuantizedPartitioner,
        XnnpackPartitioner,
    )

    partitioners = [XnnpackDynamicallyQuantizedPartitioner(), XnnpackPartitioner()]
    lowered = to_edge_transform_and_lower(
        incremental, partitioner=partitioners if backend == "xnnpack" else []
    )
    method = Runtime.get().load_program(lowered.to_executorch().buffer).load_method("forward")
    check(program, lambda ids: method.execute([ids]))


def test_one_range_for_all_tokens_becomes_one_for_each() -> None:
    program = exported(int8)
    targets = [str(n.target) for n in make_incremental(program).graph.nodes]
    assert len([t for t in targets if "choose_qparams_per_token_asymmetric" in t]) == 4  # products
    assert len([t for t in targets if "choose_qparams.tensor" in t]) == 1  # of the last token alone
    before = [n for n in program.graph.nodes if "choose_qparams.tensor" in str(n.target)]
    assert len(before) == 5  # as they were


def test_a_range_over_tokens_that_cannot_be_split_is_refused() -> None:
    quantized = torch.ops.quantized_decomposed

    class Unsigned(Model):
        def hidden(self, ids: Tensor) -> Tensor:
            x = super().hidden(ids)
            scale, zero = quantized.choose_qparams.tensor(x, 0, 255, 1e-7, torch.uint8)
            x = quantized.quantize_per_tensor.tensor(x, scale, zero, 0, 255, torch.uint8)
            return quantized.dequantize_per_tensor.tensor(x, scale, zero, 0, 255, torch.uint8)

    with pytest.raises(NotCausalError, match="choose_qparams"):
        make_incremental(exported(lambda: made(Unsigned)))
