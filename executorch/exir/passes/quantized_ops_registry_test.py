"""Operators of quantized_decomposed that PyTorch does not define."""

from __future__ import annotations

import pytest
import torch

from executorch.exir.passes import quantized_ops_registry  # noqa: F401

OPS = torch.ops.quantized_decomposed


def test_an_operator_takes_what_its_out_variant_takes() -> None:
    for operator in (OPS.add, OPS.mixed_mm, OPS.mixed_linear, OPS.embedding_4bit):
        functional, out = operator.default._schema, operator.out._schema
        names = [argument.name for argument in out.arguments]
        assert [argument.name for argument in functional.arguments] == names[:-1]
    assert OPS.embedding_4bit.dtype._schema.arguments[-1].kwarg_only


@pytest.mark.parametrize(("low", "high"), [(-129, 127), (-128, 128), (0, 255)])
def test_sums_refuse_ranges_that_the_dtype_lacks(low: int, high: int) -> None:
    a = torch.tensor([100, -100], dtype=torch.int8)
    operand = [a, 0.1, 0, -128, 127]
    assert OPS.add(*operand, *operand, 0.1, 0, -100, 90).tolist() == [90, -100]
    with pytest.raises(AssertionError, match="out of bounds for dtype"):
        OPS.add(*operand, *operand, 0.1, 0, low, high)
