"""The differences between two programs as text."""

from __future__ import annotations

from collections.abc import Iterator

from executorch.devtools.pte_tool.differences import (
    EValueDiff,
    ExecutionPlanDiff,
    OperatorUsage,
    PTEDiffResult,
    TensorDataDiff,
    TensorInfo,
)

_PAIRS = {
    "name": "name",
    "value_count": "values",
    "instruction_count": "instructions",
    "non_const_buffer_sizes": "arenas (bytes)",
}


def format_diff_result(result: PTEDiffResult, verbose: bool = False) -> str:
    """Lines for people; `verbose` adds byte sizes and which operators read a value."""
    return "\n".join(_lines(result, verbose))


def _lines(result: PTEDiffResult, verbose: bool) -> Iterator[str]:
    yield f"A: {result.path_a} ({result.size_a} bytes)"
    yield f"B: {result.path_b} ({result.size_b} bytes)"
    if result.bitwise_equal:
        yield "The files are bitwise equal."
        return
    yield "The files are NOT bitwise equal."
    if result.error is not None:
        yield f"Error: {result.error}"
        return
    if result.version_a is not None:
        yield f"Version: {result.version_a} vs {result.version_b}"
    for side, names in (("A", result.extra_plans_in_a), ("B", result.extra_plans_in_b)):
        if names:
            yield f"Methods only in {side}: {', '.join(names)}"
    for plan in result.plan_diffs:
        yield from _plan(plan, verbose)
    for named in result.named_data_diffs:
        where = f"only in {named.only_in}" if named.only_in else "bytes differ"
        yield f"Named data {named.key!r}: {where}"
    if not (result.plan_diffs or result.named_data_diffs or result.version_a is not None):
        yield "No difference in methods, values or named data."


def _plan(plan: ExecutionPlanDiff, verbose: bool) -> Iterator[str]:
    yield f"Method {plan.plan_index}:"
    for field, label in _PAIRS.items():
        a, b = getattr(plan, f"{field}_a"), getattr(plan, f"{field}_b")
        if a is not None or b is not None:
            yield f"  {label}: {a} vs {b}"
    for kind in ("operators", "delegates"):
        for side in "ab":
            if names := getattr(plan, f"{kind}_only_in_{side}"):
                yield f"  {kind} only in {side.upper()}: {', '.join(names)}"
    if plan.tensor_diffs:
        yield f"  Differing tensors: {len(plan.tensor_diffs)}"
        for tensor in plan.tensor_diffs:
            yield from _tensor(tensor, verbose)
    if plan.evalue_diffs:
        yield f"  Differing values: {len(plan.evalue_diffs)}"
        for value in plan.evalue_diffs:
            yield from _value(value, verbose)
    for side, tensors in (("A", plan.tensors_only_in_a), ("B", plan.tensors_only_in_b)):
        for info in tensors:
            yield f"  tensor only in {side}: {_name(info)}"


def _name(info: TensorInfo) -> str:
    name = f" {info.fqn}" if info.fqn else ""
    return f"value {info.evalue_index}{name}, {info.scalar_type.name} {info.sizes}"


def _readers(usages: list[OperatorUsage]) -> str:
    return ", ".join(f"{usage.name} argument {usage.arg_index}" for usage in usages) or "none"


def _tensor(diff: TensorDataDiff, verbose: bool) -> Iterator[str]:
    yield f"    {_name(diff.tensor_a)}"
    if verbose:
        yield f"      byte sizes: {diff.byte_size_a} vs {diff.byte_size_b}"
        yield f"      read by: {_readers(diff.tensor_a.operator_usages)}"
    for field in diff.metadata_diffs:
        yield f"      {field.field_name}: {field.value_a} vs {field.value_b}"
    if diff.bytes_differ and diff.num_elements:
        yield (
            f"      {diff.num_differing} of {diff.num_elements} elements differ; max_abs_diff "
            f"{diff.max_abs_diff:g}, mean_abs_diff {diff.mean_abs_diff:g}"
        )
    elif diff.bytes_differ:
        yield "      bytes differ"
    for element in diff.element_diffs:
        yield f"      {list(element.multi_index)}: {element.value_a} vs {element.value_b}"


def _value(diff: EValueDiff, verbose: bool) -> Iterator[str]:
    types = f"{diff.type_a} vs {diff.type_b}" if diff.type_mismatch else diff.type_a
    yield f"    value {diff.evalue_index}: {types}"
    for field in diff.field_diffs:
        yield f"      {field.field_name}: {field.value_a} vs {field.value_b}"
    if verbose:
        yield f"      read by: {_readers(diff.operator_usages_a)}"
