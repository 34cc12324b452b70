"""The rules of the ATen and edge dialects, as verifiers that `torch.export` programs carry."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from functools import cache
from typing import Any

import torch
from torch.fx import GraphModule, Node

from executorch.exir.dialects.edge._ops import EdgeOpOverload, find_out_variant
from executorch.exir.emit._operator_check import known_operators
from executorch.exir.graph.operands import tensor_places
from executorch.exir.graph.operator_kind import is_unwrapped
from executorch.exir.torch_internals import (
    HigherOrderOperator,
    OpOverload,
    SpecViolationError,
    Verifier,
    op_name,
    schema_of,
)

_aten = torch.ops.aten

# Not tagged core, and allowed all the same: backends have them.
EXCEPTIONS = {
    _aten.max.default,
    _aten.min.default,
    _aten.full_like.default,
    _aten._upsample_bilinear2d_aa.default,
    _aten.mkldnn_rnn_layer.default,
    _aten.quantize_per_tensor.default,
    _aten.dequantize.self,
}

# Operators that demand operands of one dtype; a cast has to be a node of its own.
_ONE_DTYPE = {
    _aten.add.Tensor,
    _aten.sub.Tensor,
    _aten.mul.Tensor,
    _aten.div.Tensor,
    _aten.div.Tensor_mode,
    _aten.minimum.default,
    _aten.mm.default,
    _aten.bmm.default,
    _aten.addmm.default,
}


def is_core_aten(op: OpOverload) -> bool:
    """Whether `op` belongs to core ATen, or copies where a core ATen operator views."""
    return torch.Tag.core in op.tags or op_name(op).endswith("_copy")


@cache
def _has_kernel(op: OpOverload) -> bool:
    """Whether the runtime's own operators include `op`: what can be exported can be run."""
    try:
        return find_out_variant(op).name() in (known_operators() or ())
    except RuntimeError:
        return False


def _is_pythons(target: Any) -> bool:
    is_operator = isinstance(target, (EdgeOpOverload, OpOverload, HigherOrderOperator))
    return not is_operator and target is not operator.getitem


def _is_functional(op: Any) -> bool:
    schema = schema_of(op)
    return not schema.is_mutable and all(r.alias_info is None for r in schema.returns)


class _Callable:
    def __call__(self, program: Any) -> None:
        """Check a program, or the graph of a graph module alone."""
        if isinstance(program, GraphModule):
            self._check_graph_module(program)  # type: ignore[attr-defined]
        else:
            self.check(program)  # type: ignore[attr-defined]


class EXIRATenDialectVerifierBase(_Callable, Verifier):
    """ATen operators only; programs may still be for training."""

    dialect = "OLD_EXIR_ATEN_DISABLED"

    def allowed_getattr_types(self) -> tuple[type[Any], ...]:
        return (*super().allowed_getattr_types(), torch.Tensor)


def EXIRATenDialectVerifier(  # noqa: N802 (a class made to measure, under its public name)
    edge_compile_config: Any = None,
    class_only: bool = False,
    core_aten_ops_exception_list: list[OpOverload] | None = None,
    preserve_ops: list[OpOverload] | None = None,
) -> Any:
    """A verifier of core ATen operators and custom ones; the class if `class_only`."""
    allowed = _allowed(edge_compile_config, core_aten_ops_exception_list, preserve_ops)

    class _ATenVerifier(EXIRATenDialectVerifierBase):
        dialect = "OLD_EXIR_ATEN"

        def check_valid_op(self, op: Any) -> None:
            if isinstance(op, OpOverload) and not _is_allowed(op, allowed):
                raise _not_core(op)

    return _ATenVerifier if class_only else _ATenVerifier()


def _allowed(
    config: Any, exceptions: list[OpOverload] | None, preserved: list[OpOverload] | None
) -> set[OpOverload]:
    """What a user allows beside core ATen operators."""
    allowed = {*(exceptions or ()), *(preserved or ())}
    if config is not None:
        allowed |= {*(config._core_aten_ops_exception_list or ()), *(config.preserve_ops or ())}
    return allowed


def _is_allowed(op: OpOverload, allowed: set[OpOverload]) -> bool:
    return op.namespace != "aten" or is_core_aten(op) or op in EXCEPTIONS | allowed


def _not_core(op: OpOverload) -> SpecViolationError:
    return SpecViolationError(
        f"{op} is not a core ATen operator and was not decomposed; allow it with "
        "EdgeCompileConfig(_core_aten_ops_exception_list=[...]) if the target runs it"
    )


def _check_aten_op(op: OpOverload, allowed: set[OpOverload]) -> None:
    if not _is_functional(op):
        raise SpecViolationError(
            f"{op}: edge operators are functional; this one {_why_not_functional(op)}"
        )
    if not (_is_allowed(op, allowed) or _has_kernel(op)):
        raise _not_core(op)


def _why_not_functional(op: OpOverload) -> str:
    return "writes to its arguments" if schema_of(op).is_mutable else "returns a view of its input"


def _tensors(node: Node) -> Iterable[tuple[Node, torch.Tensor]]:
    for source in node.all_input_nodes:
        value = source.meta.get("val")
        if isinstance(value, torch.Tensor):
            yield source, value


def _check_one_dtype(node: Node) -> None:
    tensors = list(_tensors(node))
    dtypes = {value.dtype for _, value in tensors}
    if len(dtypes) > 1:
        found = ", ".join(f"{source}: {value.dtype}" for source, value in tensors)
        raise SpecViolationError(
            f"{node} = {node.target.__name__}: operands must have one dtype, found {found}; "  # type: ignore[union-attr]
            "insert a cast (RemoveMixedTypeOperators does)"
        )


def _check_no_scalar_operand(node: Node) -> None:
    for position, name in tensor_places(node.target._op):  # type: ignore[union-attr]
        operand = node.args[position] if position < len(node.args) else node.kwargs.get(name)
        if isinstance(operand, (bool, int, float)):
            raise SpecViolationError(
                f"{node} = {node.target.__name__}: argument {name} is the number {operand!r}, "  # type: ignore[union-attr]
                "expected a tensor (ScalarToTensorPass makes one)"
            )


def _check_numbers_only(node: Node) -> None:
    """Python's own functions compute sizes: the runtime has them for numbers alone."""
    for source, value in _tensors(node):
        raise SpecViolationError(
            f"{node} = {node.target}: Python's function on {source}, a tensor of {value.dtype} and "
            f"shape {list(value.shape)}; expected an edge operator, such as "
            "exir_ops.edge.aten.add.Tensor"
        )


_MEMORY_FORMAT_OPS = {_aten._to_copy.default, _aten.clone.default, _aten.empty.memory_format}


def _check_dim_order(node: Node, skip_dim_order: bool) -> None:
    op = node.target._op  # type: ignore[union-attr]
    if not skip_dim_order and op in _MEMORY_FORMAT_OPS:
        raise SpecViolationError(
            f"{node} = {op}: takes a memory format; in dim order mode use its dim_order_ops form"
        )
    if skip_dim_order and op.namespace == "dim_order_ops":
        raise SpecViolationError(f"{node} = {op}: dim order operators need _skip_dim_order=False")


def EXIREdgeDialectVerifier(  # noqa: N802 (a class made to measure, under its public name)
    edge_compile_config: Any = None,
    class_only: bool = False,
    core_aten_ops_exception_list: list[OpOverload] | None = None,
    preserve_ops: list[OpOverload] | None = None,
) -> Any:
    """A verifier of the edge dialect under `edge_compile_config`; the class if `class_only`."""
    if edge_compile_config is None:
        from executorch.exir.capture._config import EdgeCompileConfig

        edge_compile_config = EdgeCompileConfig()
    allowed = _allowed(edge_compile_config, core_aten_ops_exception_list, preserve_ops)
    checks = edge_compile_config._check_ir_validity
    skips = edge_compile_config._skip_dim_order

    class _EdgeVerifier(_Callable, Verifier):
        dialect = "EDGE"

        def allowed_getattr_types(self) -> tuple[type[Any], ...]:
            return (*super().allowed_getattr_types(), torch.Tensor, torch.nn.Module)

        def allowed_op_types(self) -> tuple[type[Any], ...]:
            return (*super().allowed_op_types(), EdgeOpOverload)

        def check_valid_op(self, op: Any) -> None:
            if not checks or op is operator.getitem or isinstance(op, HigherOrderOperator):
                return
            if isinstance(op, EdgeOpOverload):
                _check_aten_op(op._op, allowed)
            elif not is_unwrapped(op):
                raise SpecViolationError(f"{op} is not an edge operator (exir_ops.edge.*)")

        check_valid_edge_op = check_valid_op

        def check_additional(self, gm: GraphModule) -> None:
            if not checks:
                return
            for node in gm.graph.nodes:
                if node.op == "call_function" and _is_pythons(node.target):
                    _check_numbers_only(node)
                if node.op == "call_function" and isinstance(node.target, EdgeOpOverload):
                    _check_no_scalar_operand(node)
                    _check_dim_order(node, skips)
                    if node.target._op in _ONE_DTYPE:
                        _check_one_dtype(node)

        def is_valid(self, program: Any) -> bool:
            """Whether a program, or the graph of a graph module, keeps the rules."""
            try:
                self(program)
            except SpecViolationError:
                return False
            return True

    return _EdgeVerifier if class_only else _EdgeVerifier()
