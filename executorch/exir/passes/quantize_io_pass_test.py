from __future__ import annotations

import copy

import pytest
import torch

from executorch.exir import EdgeProgramManager, to_edge
from executorch.exir.passes import quantized_ops_registry  # noqa: F401
from executorch.exir.passes.quantize_io_pass import (
    QuantizeInputs,
    QuantizeOutputs,
    extract_io_quant_params,
    get_config_method_name,
)
from executorch.runtime import Runtime

q = torch.ops.quantized_decomposed
IN, OUT = (0.02, 3, -128, 127, torch.int8), (0.05, -1, -128, 127, torch.int8)
X = torch.linspace(-1, 1, 8)


class Model(torch.nn.Module):
    """Quantized from end to end."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = q.dequantize_per_tensor(q.quantize_per_tensor(x, *IN), *IN)
        return q.dequantize_per_tensor(q.quantize_per_tensor(x * 2, *OUT), *OUT)


def manager() -> EdgeProgramManager:
    return to_edge(torch.export.export(Model(), (X,)))


def test_a_program_takes_and_gives_integers_and_tells_their_scales() -> None:
    edge = manager()
    edge = edge.transform([QuantizeInputs(edge, [0]), QuantizeOutputs(edge, [0])])
    program = Runtime.get().load_program(edge.to_executorch().buffer)

    def told(kind: str, key: str) -> float:
        method = program.load_method(get_config_method_name(None, kind, 0, key))
        assert method is not None
        return method.execute([])[0]

    assert [told("input", k) for k in ("scale", "zp", "quant_min")] == [0.02, 3, -128]
    forward = program.load_method("forward")
    assert forward is not None
    (found,) = forward.execute([q.quantize_per_tensor(X, *IN)])
    assert found.dtype == torch.int8
    back = (found.float() - told("output", "zp")) * told("output", "scale")
    torch.testing.assert_close(back, Model()(X))


def test_the_callers_own_parameters_are_converted() -> None:
    edge = manager()
    own = {"scale": 0.01, "zp": 0, "dtype": torch.uint8}
    edge = edge.transform([QuantizeInputs(edge, {0: own})])
    method = Runtime.get().load_program(edge.to_executorch().buffer).load_method("forward")
    assert method is not None
    given = q.quantize_per_tensor(X, 0.01, 0, 0, 255, torch.uint8)
    (found,) = method.execute([given])
    torch.testing.assert_close(found, Model()(given.float() * 0.01))


def test_parameters_are_extracted_by_name() -> None:
    found = extract_io_quant_params(copy.deepcopy(manager()))
    (given,), (result,) = found["inputs"].values(), found["outputs"].values()
    assert (given["scale"], given["zero_point"]) == IN[:2]
    assert (result["scale"], result["zero_point"]) == OUT[:2]


def test_floats_are_refused_with_what_is_there() -> None:
    edge = to_edge(torch.export.export(torch.nn.ReLU(), (X,)))
    with pytest.raises(ValueError, match="relu.*expected quantized_decomposed::quantize"):
        edge.transform([QuantizeInputs(edge, [0])])
    with pytest.raises(ValueError, match="no quantized_decomposed::dequantize"):
        edge.transform([QuantizeOutputs(edge, [0])])


@pytest.mark.parametrize("index", [1, -1, 2**63, "x"])
def test_inputs_and_outputs_that_do_not_exist_are_named(index: object) -> None:
    edge = manager()
    with pytest.raises(ValueError, match=f"input index {index!r} is out of bounds: 1 inputs"):
        edge.transform([QuantizeInputs(edge, [index])])  # type: ignore[list-item]
    with pytest.raises(ValueError, match=f"output index {index!r} is out of bounds: 1 outputs"):
        edge.transform([QuantizeOutputs(edge, [index])])  # type: ignore[list-item]
