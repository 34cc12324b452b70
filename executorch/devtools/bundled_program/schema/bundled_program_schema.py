"""The tables of `bundled_program.fbs`, field by field."""

from __future__ import annotations

from dataclasses import dataclass

from executorch.exir.scalar_type import ScalarType
from executorch.exir.schema import Bool, Double, Int


@dataclass
class Tensor:
    """`data` is contiguous in the dim order."""

    scalar_type: ScalarType
    sizes: list[int]
    data: bytes
    dim_order: list[int]


ValueUnion = Tensor | Int | Bool | Double


@dataclass
class Value:
    val: ValueUnion


@dataclass
class BundledMethodTestCase:
    """Inputs in the order of the method's; expected outputs are tensors, all of them or none."""

    inputs: list[Value]
    expected_outputs: list[Value]


@dataclass
class BundledMethodTestSuite:
    method_name: str
    test_cases: list[BundledMethodTestCase]


@dataclass
class BundledProgram:
    version: int
    method_test_suites: list[BundledMethodTestSuite]
    program: bytes
