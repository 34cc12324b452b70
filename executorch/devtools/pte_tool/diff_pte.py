"""Compares two .pte files value by value: `python -m executorch.devtools.pte_tool.diff_pte A B`.

`executorch diff` compares instructions, memory and segments; this looks into the constants.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch

from executorch.devtools.pte_tool.describe import format_diff_result
from executorch.devtools.pte_tool.differences import (
    ElementDiff,
    EValueDiff,
    ExecutionPlanDiff,
    FieldDiff,
    NamedDataDiff,
    OperatorUsage,
    PTEDiffResult,
    TensorDataDiff,
    TensorInfo,
)
from executorch.exir._serialize._program import PTEFile, deserialize_pte_binary
from executorch.exir.schema import DelegateCall, ExecutionPlan, KernelCall, Tensor
from executorch.exir.tensor import get_scalar_type

__all__ = ["diff_pte", "format_diff_result"]

# Fields of tensors that say nothing: positions in a file's own tables.
_POSITIONS = {"data_buffer_idx"}


def diff_pte(
    data_a: bytes, data_b: bytes, path_a: str = "A", path_b: str = "B", max_samples: int = 10
) -> PTEDiffResult:
    """Compare two programs: their methods in order, values by index, named data by key.

    max_samples  how many differing elements of a tensor are listed
    Bytes that are no program give a result with an `error`.
    """
    result = PTEDiffResult(path_a, path_b, len(data_a), len(data_b), data_a == data_b)
    if result.bitwise_equal:
        return result
    path = path_a
    try:
        a = deserialize_pte_binary(data_a)
        path = path_b
        b = deserialize_pte_binary(data_b)
    except ValueError as error:
        result.error = f"Deserialization failed: {path}: {error}"
        return result
    if a.program.version != b.program.version:
        result.version_a, result.version_b = a.program.version, b.program.version
    plans_a, plans_b = a.program.execution_plan, b.program.execution_plan
    for index, (plan_a, plan_b) in enumerate(zip(plans_a, plans_b, strict=False)):
        diff = _diff_plans(index, (a, plan_a), (b, plan_b), max_samples)
        if diff.has_differences():
            result.plan_diffs.append(diff)
    result.extra_plans_in_a = [p.name for p in plans_a[len(plans_b) :]]
    result.extra_plans_in_b = [p.name for p in plans_b[len(plans_a) :]]
    result.named_data_diffs = _diff_named_data(a, b)
    return result


_Side = tuple[PTEFile, ExecutionPlan]


def _diff_plans(index: int, a: _Side, b: _Side, max_samples: int) -> ExecutionPlanDiff:
    diff = ExecutionPlanDiff(index)
    (_, plan_a), (_, plan_b) = a, b
    for name, of in {
        "name": lambda p: p.name,
        "non_const_buffer_sizes": lambda p: list(p.non_const_buffer_sizes),
        "value_count": lambda p: len(p.values),
        "instruction_count": lambda p: sum(len(c.instructions) for c in p.chains),
    }.items():
        if of(plan_a) != of(plan_b):
            setattr(diff, f"{name}_a", of(plan_a))
            setattr(diff, f"{name}_b", of(plan_b))
    for name, names_of in {
        "operators": lambda p: Counter(_operator_names(p)),
        "delegates": lambda p: Counter(d.id for d in p.delegates),
    }.items():
        setattr(diff, f"{name}_only_in_a", sorted((names_of(plan_a) - names_of(plan_b)).elements()))
        setattr(diff, f"{name}_only_in_b", sorted((names_of(plan_b) - names_of(plan_a)).elements()))
    usages_a, usages_b = _usages(plan_a), _usages(plan_b)
    values = zip(plan_a.values, plan_b.values, strict=False)
    for i, (value_a, value_b) in enumerate(values):
        if isinstance(value_a.val, Tensor) and isinstance(value_b.val, Tensor):
            infos = _info(i, value_a.val, usages_a[i]), _info(i, value_b.val, usages_b[i])
            found = _diff_tensors(infos, (a[0], value_a.val), (b[0], value_b.val), max_samples)
            if found.bytes_differ or found.metadata_diffs:
                diff.tensor_diffs.append(found)
        elif value_a.val != value_b.val:
            diff.evalue_diffs.append(
                _diff_values(i, value_a.val, value_b.val, usages_a[i], usages_b[i])
            )
    common = min(len(plan_a.values), len(plan_b.values))
    diff.tensors_only_in_a = _tensors_from(common, plan_a, usages_a)
    diff.tensors_only_in_b = _tensors_from(common, plan_b, usages_b)
    return diff


def _operator_names(plan: ExecutionPlan) -> list[str]:
    return [f"{op.name}.{op.overload}" if op.overload else op.name for op in plan.operators]


def _usages(plan: ExecutionPlan) -> dict[int, list[OperatorUsage]]:
    """Value -> the calls that have it as an argument."""
    names = _operator_names(plan)
    found: dict[int, list[OperatorUsage]] = defaultdict(list)
    for chain in plan.chains:
        for instruction in chain.instructions:
            call = instruction.instr_args
            if isinstance(call, KernelCall):
                name = names[call.op_index]
            elif isinstance(call, DelegateCall):
                name = plan.delegates[call.delegate_index].id
            else:
                continue
            for position, value in enumerate(call.args):
                found[value].append(OperatorUsage(name, position))
    return found


def _info(index: int, tensor: Tensor, usages: list[OperatorUsage]) -> TensorInfo:
    extra = tensor.extra_tensor_info
    return TensorInfo(
        index,
        tensor.scalar_type,
        list(tensor.sizes),
        extra.fully_qualified_name if extra else None,
        tensor.data_buffer_idx,
        usages,
    )


def _tensors_from(
    start: int, plan: ExecutionPlan, usages: dict[int, list[OperatorUsage]]
) -> list[TensorInfo]:
    return [
        _info(i, value.val, usages[i])
        for i, value in enumerate(plan.values)
        if i >= start and isinstance(value.val, Tensor)
    ]


def _diff_fields(a: Any, b: Any) -> list[FieldDiff]:
    return [
        FieldDiff(f.name, getattr(a, f.name), getattr(b, f.name))
        for f in fields(a)
        if f.name not in _POSITIONS and getattr(a, f.name) != getattr(b, f.name)
    ]


def _diff_values(
    index: int, a: Any, b: Any, usages_a: list[OperatorUsage], usages_b: list[OperatorUsage]
) -> EValueDiff:
    same = type(a) is type(b)
    names = type(a).__name__, type(b).__name__
    found = _diff_fields(a, b) if same else []
    return EValueDiff(index, *names, not same, found, usages_a, usages_b)


def _bytes_of(file: PTEFile, tensor: Tensor) -> bytes:
    """The stored elements; none for memory that a call fills."""
    planned = tensor.allocation_info is not None
    buffers = (file.mutable_data or []) if planned else file.program.constant_buffer
    if not 0 < tensor.data_buffer_idx < len(buffers):
        return b""
    dtype = get_scalar_type(tensor.scalar_type)
    size = int(np.prod(tensor.sizes, dtype=object)) * dtype.itemsize
    return bytes(buffers[tensor.data_buffer_idx].storage[:size])


def _diff_tensors(
    infos: tuple[TensorInfo, TensorInfo],
    a: tuple[PTEFile, Tensor],
    b: tuple[PTEFile, Tensor],
    max_samples: int,
) -> TensorDataDiff:
    data_a, data_b = _bytes_of(*a), _bytes_of(*b)
    tensor = a[1]
    metadata = _diff_fields(tensor, b[1])
    diff = TensorDataDiff(*infos, len(data_a), len(data_b), data_a != data_b, metadata)
    alike = tensor.scalar_type == b[1].scalar_type and len(data_a) == len(data_b)
    if not diff.bytes_differ or not alike:
        return diff
    dtype = get_scalar_type(tensor.scalar_type)
    if len(data_a) % dtype.itemsize:
        return diff
    one, other = (torch.frombuffer(bytearray(d), dtype=dtype) for d in (data_a, data_b))
    wide = torch.complex128 if dtype.is_complex else torch.float64
    distance = (one.to(wide) - other.to(wide)).abs()
    differing = ((one != other) & ~(one.isnan() & other.isnan())).nonzero().flatten()
    diff.num_elements, diff.num_differing = one.numel(), differing.numel()
    diff.max_abs_diff, diff.mean_abs_diff = float(distance.max()), float(distance.mean())
    stored = [tensor.sizes[d] for d in tensor.dim_order]
    for flat in differing[:max_samples].tolist():
        place = np.unravel_index(flat, stored) if stored else ()
        index = [0] * len(stored)
        for dim, position in zip(tensor.dim_order, place, strict=True):
            index[dim] = int(position)
        sample = ElementDiff(flat, tuple(index), one[flat].item(), other[flat].item())
        diff.element_diffs.append(sample)
    return diff


def _diff_named_data(a: PTEFile, b: PTEFile) -> list[NamedDataDiff]:
    blobs = [
        {
            key: bytes(file.named_data.buffers[entry.buffer_index])
            for key, entry in file.named_data.pte_data.items()
        }
        if file.named_data is not None
        else {}
        for file in (a, b)
    ]
    found = []
    for key in sorted(blobs[0].keys() | blobs[1].keys()):
        in_a, in_b = key in blobs[0], key in blobs[1]
        if not (in_a and in_b):
            found.append(NamedDataDiff(key, "A" if in_a else "B"))
        elif blobs[0][key] != blobs[1][key]:
            found.append(NamedDataDiff(key, "", True))
    return found


def main(arguments: list[str] | None = None) -> int:
    """0 for files that are equal to the bit, else 1."""
    parser = argparse.ArgumentParser(prog="diff_pte", description=__doc__)
    parser.add_argument("file_a", type=Path)
    parser.add_argument("file_b", type=Path)
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="print sizes and operators, too"
    )
    parser.add_argument(
        "--max-samples", type=int, default=10, help="elements to list of each tensor"
    )
    given = parser.parse_args(arguments)
    try:
        contents = given.file_a.read_bytes(), given.file_b.read_bytes()
    except OSError as error:
        print(f"diff_pte: {error}", file=sys.stderr)
        return 2
    result = diff_pte(*contents, str(given.file_a), str(given.file_b), given.max_samples)
    print(format_diff_result(result, given.verbose))
    return 0 if result.bitwise_equal else 1


if __name__ == "__main__":
    sys.exit(main())
