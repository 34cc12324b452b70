"""Custom operators of torch.library, which only an application has kernels for."""

from __future__ import annotations

import pytest
import torch

from executorch.exir import to_edge
from executorch.exir.capture._callable import as_module
from executorch.exir.error import ExportError

torch.library.define("python_ops_test::scale", "(Tensor x, float factor) -> Tensor")
torch.library.define(
    "python_ops_test::scale.out", "(Tensor x, float factor, *, Tensor(a!) out) -> Tensor(a!)"
)
torch.library.define("python_ops_test::split2", "(Tensor x) -> (Tensor, Tensor)")
torch.library.define(
    "python_ops_test::split2.out",
    "(Tensor x, *, Tensor(a!) a, Tensor(b!) b) -> (Tensor(a!), Tensor(b!))",
)
torch.library.define("python_ops_test::alone", "(Tensor x) -> Tensor")
for name in ("scale", "alone"):
    torch.library.register_fake(
        f"python_ops_test::{name}", lambda x, factor=1.0: torch.empty_like(x)
    )
torch.library.register_fake(
    "python_ops_test::split2", lambda x: (torch.empty_like(x[:1]), torch.empty_like(x[1:]))
)


def export(operator):  # noqa: ANN001, ANN201
    program = torch.export.export(as_module(operator), (torch.ones(2, 3),))
    return to_edge(program).to_executorch()


def operators_of(program) -> list[str]:  # noqa: ANN001
    plan = program.executorch_program.execution_plan[0]
    return [f"{o.name}.{o.overload}" for o in plan.operators]


def test_operator_with_out_variant_is_called_from_the_program() -> None:
    ops = torch.ops.python_ops_test
    program = export(lambda x: ops.scale(x, 2.0) + 1)
    assert "python_ops_test::scale.out" in operators_of(program)


def test_operator_with_several_results_is_too() -> None:
    ops = torch.ops.python_ops_test
    program = export(lambda x: ops.split2(x)[0] + ops.split2(x)[1])
    assert operators_of(program) == ["python_ops_test::split2.out", "aten::add.out"]


def test_missing_out_variant_says_what_to_register() -> None:
    with pytest.raises(ExportError, match="without an out variant") as raised:
        export(lambda x: torch.ops.python_ops_test.alone(x))
    message = str(raised.value)
    assert "python_ops_test::alone, node" in message
    wanted = "'python_ops_test::alone.out', '(Tensor x, *, Tensor(a!) out) -> Tensor(a!)'"
    assert f"torch.library.define({wanted})" in message
