"""A program together with test cases for its methods."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from executorch.devtools.bundled_program import schema
from executorch.devtools.bundled_program.config import MethodTestCase, MethodTestSuite
from executorch.devtools.bundled_program.version import BUNDLED_PROGRAM_SCHEMA_VERSION
from executorch.exir import schema as program_schema
from executorch.exir._serialize._program import deserialize_pte_binary
from executorch.exir.tensor import dim_order_of, scalar_type_enum

__all__ = ["BundledProgram"]


class BundledProgram:
    """Ties test cases to a program, for running and verifying it where it will be used.

    executorch_program   what `to_executorch` gave; None with a `pte_file_path`
    method_test_suites   one per method at most; every test case must fit the method
    pte_file_path        a .pte file

    ValueError, with method, test case and input, where a test case does not fit; TypeError for
    what is no program or no list of suites.
    """

    def __init__(
        self,
        executorch_program: Any | None,
        method_test_suites: Sequence[MethodTestSuite],
        pte_file_path: str | None = None,
    ) -> None:
        if (executorch_program is None) == (pte_file_path is None):
            raise RuntimeError("give either executorch_program or pte_file_path")
        if executorch_program is not None and not hasattr(executorch_program, "executorch_program"):
            raise TypeError(
                f"executorch_program: expected what to_executorch gave, found "
                f"{executorch_program!r:.80}"
            )
        _require_suites(method_test_suites)
        self.executorch_program = executorch_program
        self._pte_file_path = pte_file_path
        # The file has them in this order.
        self.method_test_suites = sorted(method_test_suites, key=lambda suite: suite.method_name)
        self._bytes: bytes | None = None
        self._schema: schema.BundledProgram | None = None
        _check(self._program(), self.method_test_suites)

    def _program(self) -> program_schema.Program:
        if self.executorch_program is not None:
            return self.executorch_program.executorch_program
        return deserialize_pte_binary(self._program_bytes()).program

    def _program_bytes(self) -> bytes:
        if self._bytes is None:
            if self.executorch_program is not None:
                self._bytes = self.executorch_program.buffer
            else:
                self._bytes = Path(self._pte_file_path).read_bytes()
        return self._bytes

    def serialize_to_schema(self) -> schema.BundledProgram:
        if self._schema is None:
            suites = [
                schema.BundledMethodTestSuite(
                    suite.method_name, [_case(case) for case in suite.test_cases]
                )
                for suite in self.method_test_suites
            ]
            self._schema = schema.BundledProgram(
                BUNDLED_PROGRAM_SCHEMA_VERSION, suites, self._program_bytes()
            )
        return self._schema


def _require_suites(suites: Any) -> None:
    if not isinstance(suites, Sequence):
        raise TypeError(
            f"method_test_suites: expected a list of MethodTestSuites, found {suites!r:.80}"
        )
    for suite in suites:
        if not isinstance(suite, MethodTestSuite):
            raise TypeError(f"method_test_suites: expected a MethodTestSuite, found {suite!r:.80}")
        cases = suite.test_cases
        if not isinstance(cases, Sequence) or not all(isinstance(c, MethodTestCase) for c in cases):
            raise TypeError(
                f"method {suite.method_name!r}: test_cases: expected a list of MethodTestCases, "
                f"found {cases!r:.80}"
            )


def _case(case: MethodTestCase) -> schema.BundledMethodTestCase:
    return schema.BundledMethodTestCase(
        [_value(item) for item in case.inputs], [_value(item) for item in case.expected_outputs]
    )


def _value(item: Any) -> schema.Value:
    if isinstance(item, torch.Tensor):
        return schema.Value(_tensor(item.detach().cpu().resolve_neg().resolve_conj()))
    if isinstance(item, bool):
        return schema.Value(schema.Bool(item))
    return schema.Value(schema.Int(item) if isinstance(item, int) else schema.Double(item))


def _tensor(tensor: torch.Tensor) -> schema.Tensor:
    order = list(dim_order_of(tensor))
    data = tensor.permute(order).contiguous().reshape(-1).view(torch.uint8)
    return schema.Tensor(
        scalar_type_enum(tensor.dtype), list(tensor.shape), data.numpy().tobytes(), order
    )


def _check(program: program_schema.Program, suites: Sequence[MethodTestSuite]) -> None:
    plans = {plan.name: plan for plan in program.execution_plan}
    seen: set[str] = set()
    for suite in suites:
        name = suite.method_name
        if name not in plans:
            raise ValueError(f"no method {name!r} in the program; it has {sorted(plans)}")
        if name in seen:
            raise ValueError(f"method {name!r} has more than one test suite")
        seen.add(name)
        for i, case in enumerate(suite.test_cases):
            _check_case(plans[name], case, f"method {name!r}, test case {i}")


def _check_case(plan: program_schema.ExecutionPlan, case: MethodTestCase, place: str) -> None:
    if len(case.inputs) != len(plan.inputs):
        raise ValueError(f"{place}: {len(case.inputs)} inputs, the method takes {len(plan.inputs)}")
    for i, (item, index) in enumerate(zip(case.inputs, plan.inputs, strict=True)):
        _check_value(item, plan.values[index].val, f"{place}: input {i}")
    if not case.expected_outputs:
        return
    found, expected = len(case.expected_outputs), len(plan.outputs)
    if found != expected:
        raise ValueError(f"{place}: {found} expected outputs, the method has {expected}")
    for i, (item, index) in enumerate(zip(case.expected_outputs, plan.outputs, strict=True)):
        _check_value(item, plan.values[index].val, f"{place}: expected output {i}")


def _check_value(item: Any, value: Any, place: str) -> None:
    """Numbers were constants for the exporter: the method takes no other."""
    kind = type(value).__name__
    if isinstance(value, program_schema.Tensor):
        if not isinstance(item, torch.Tensor):
            raise ValueError(f"{place} is a {type(item).__name__}, the method's is a tensor")
        if scalar_type_enum(item.dtype) != value.scalar_type:
            raise ValueError(
                f"{place} is of {item.dtype}, the method's is of {value.scalar_type.name}"
            )
        _check_shape(list(item.shape), value, place)
        return
    fields = {"Int": (int, "int_val"), "Bool": (bool, "bool_val"), "Double": (float, "double_val")}
    if kind not in fields:
        raise ValueError(f"{place}: a bundled program cannot hold a value of kind {kind}")
    wanted, field = fields[kind]
    if type(item) is not wanted or item != getattr(value, field):
        raise ValueError(f"{place} is {item!r}; it was exported as {getattr(value, field)!r}")


def _check_shape(found: list[int], tensor: program_schema.Tensor, place: str) -> None:
    """Sizes must be the method's, or at most those where it was exported with dynamic ones."""
    sizes, dynamism = tensor.sizes, tensor.shape_dynamism
    static = dynamism is program_schema.TensorShapeDynamism.STATIC
    bounded = dynamism is program_schema.TensorShapeDynamism.DYNAMIC_BOUND
    fits = len(found) == len(sizes)
    if fits and (static or bounded):
        pairs = zip(found, sizes, strict=True)
        fits = found == sizes if static else all(size <= bound for size, bound in pairs)
    if not fits:
        wanted = f"{sizes}" if static else f"{sizes} at most"
        raise ValueError(f"{place} has shape {found}; the method's has {wanted}")
