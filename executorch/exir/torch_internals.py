"""The interfaces of PyTorch that it keeps to itself, under plain names.

No other module of the package names what begins with an underscore in torch; `./dev lint` checks
that (`tools/check_torch_names.py`). What a new release changes is mended here, and
`torch_internals_test.py` tells what that is. Names of `_LATE` are imported at first use: torch does
not load their modules itself.
"""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import torch
from torch import _refs
from torch._C import DispatchKey
from torch._C import _DisableTorchDispatch as DisableTorchDispatch
from torch._decomp import get_decompositions
from torch._dispatch.python import enable_python_dispatcher
from torch._export.utils import (
    _is_preservable_cia_op,
    get_buffer,
    get_lifted_tensor_constant,
    get_param,
    is_buffer,
    is_lifted_tensor_constant,
    is_param,
)
from torch._export.verifier import SpecViolationError, Verifier
from torch._guards import active_fake_mode, detect_fake_mode
from torch._higher_order_ops import while_loop
from torch._higher_order_ops.utils import autograd_not_implemented
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.export import ExportedProgram
from torch.fx import Graph, Node
from torch.fx._lazy_graph_module import _LazyGraphModule as LazyGraphModule
from torch.fx.graph import CodeGen
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass
from torch.utils._pytree import (
    TreeSpec,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_unflatten,
    treespec_dumps,
    treespec_loads,
)

__all__ = [
    "CodeGen",
    "DisableTorchDispatch",
    "DispatchKey",
    "FakeTensor",
    "FakeTensorMode",
    "HigherOrderOperator",
    "LazyGraphModule",
    "OpOverload",
    "OpOverloadPacket",
    "SpecViolationError",
    "TorchDispatchMode",
    "TreeSpec",
    "Verifier",
    "active_fake_mode",
    "autograd_not_implemented",
    "detect_fake_mode",
    "enable_python_dispatcher",
    "get_buffer",
    "get_decompositions",
    "get_lifted_tensor_constant",
    "get_param",
    "is_buffer",
    "is_lifted_tensor_constant",
    "is_param",
    "is_traceable_wrapper_subclass",
    "pytree",
    "tree_flatten",
    "tree_leaves",
    "tree_map",
    "tree_unflatten",
    "treespec_dumps",
    "treespec_loads",
    "while_loop",
]

_LATE = {
    # Ranges of symbols, and symbolic expressions computed with other values.
    "ValueRanges": ("torch.utils._sympy.value_ranges", "ValueRanges"),
    "FloorDiv": ("torch.utils._sympy.functions", "FloorDiv"),
    "bound_sympy": ("torch.utils._sympy.value_ranges", "bound_sympy"),
    "sympy_interp": ("torch.utils._sympy.interp", "sympy_interp"),
    "PythonReferenceAnalysis": ("torch.utils._sympy.reference", "PythonReferenceAnalysis"),
    "TensorReferenceAnalysis": ("torch.utils._sympy.reference", "TensorReferenceAnalysis"),
    "ConstantSource": ("torch._dynamo.source", "ConstantSource"),
    # The text of exported programs: its dataclasses, their JSON, operators of other dialects.
    "ExportedProgramFields": ("torch._export.serde.schema", "ExportedProgram"),
    "torch_serde": ("torch._export.serde", "serialize"),
    "SerializeError": ("torch._export.serde.serialize", "SerializeError"),
    "ExtensionHandler": ("torch._export.serde.serialize", "ExtensionHandler"),
    "GraphModuleDeserializer": ("torch._export.serde.serialize", "GraphModuleDeserializer"),
    "GraphModuleSerializer": ("torch._export.serde.serialize", "GraphModuleSerializer"),
    "reconstruct_fake_tensor": ("torch._export.serde.serialize", "_reconstruct_fake_tensor"),
    "serialized_dtypes": ("torch._export.serde.serialize", "_TORCH_TO_SERIALIZE_DTYPE"),
    "dataclass_to_dict": ("torch._export.serde.serialize", "_dataclass_to_dict"),
    "dict_to_dataclass": ("torch._export.serde.serialize", "_dict_to_dataclass"),
    "reduce_fake_tensor": ("torch._export.serde.serialize", "_reduce_fake_tensor"),
    "register_extension": ("torch._export.serde.serialize", "register_extension"),
    "registered_extension_types": (
        "torch._export.serde.serialize",
        "_registered_extension_types",
    ),
    # A scale for each group that its numbers fit best (half-quadratic quantization).
    "choose_qparams_and_quantize_scale_only_hqq": (
        "torchao.quantization.quant_primitives",
        "_choose_qparams_and_quantize_scale_only_hqq",
    ),
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, there = _LATE[name]
    value = getattr(importlib.import_module(home), there, None)
    if value is None:  # a module that its package does not import
        value = importlib.import_module(f"{home}.{there}")
    globals()[name] = value
    return value


# Archives of fake tensors, which `reduce_fake_tensor` writes.


@contextmanager
def fake_tensors_read_into(mode: FakeTensorMode, *makers: Any) -> Iterator[None]:
    """`torch.load` makes the fake tensors of an archive ones of `mode`, by torch's function or by
    one of `makers`."""
    from torch._export.serde import serialize

    reader = serialize.GraphModuleDeserializer()
    reader.fake_tensor_mode = mode
    make = serialize._reconstruct_fake_tensor
    outer = serialize._CURRENT_DESERIALIZER
    # At its end the context removes all that it was given, also what the caller had allowed before.
    known = torch.serialization.get_safe_globals()
    new = [each for each in (make, *makers) if each not in known]
    serialize._CURRENT_DESERIALIZER = reader
    try:
        with torch.serialization.safe_globals(new):
            yield
    finally:
        serialize._CURRENT_DESERIALIZER = outer


# Operators. Those of the edge and backend dialects have the same attributes.


def schema_of(op: Any) -> torch.FunctionSchema:
    """The schema of an operator; AttributeError for what has none."""
    return cast(torch.FunctionSchema, op._schema)


def find_schema(target: Any) -> torch.FunctionSchema | None:
    """The schema of what a node calls; None for functions and methods, which have none."""
    return getattr(target, "_schema", None)


def op_name(op: Any) -> str:
    """`add` of `aten::add.Tensor`."""
    return cast(str, op._opname)


def overload_name(op: Any) -> str:
    """`Tensor` of `aten::add.Tensor`; `default` of `aten::relu`."""
    return cast(str, op._overloadname)


def packet_name(packet: OpOverloadPacket) -> str:
    """`aten::add` of `torch.ops.aten.add`."""
    return packet._qualified_op_name


def make_wrapper_subclass(
    cls: type, shape: Sequence[int], dtype: torch.dtype, device: torch.device
) -> Any:
    """A tensor of a subclass that has no memory of its own, which its parts are."""
    return torch.Tensor._make_wrapper_subclass(cls, tuple(shape), dtype=dtype, device=device)


# For subclasses that only look at what reaches the dispatcher.
disabled_torch_function = torch._C._disabled_torch_function_impl


def all_operator_names() -> list[str]:
    """Every overload that is registered, such as `aten::add.Tensor`."""
    return torch._C._dispatch_get_all_op_names()


def all_schemas() -> Sequence[torch.FunctionSchema]:
    """The schemas of every overload that TorchScript knows, custom ones among them."""
    return torch._C._jit_get_all_schemas()


def define_quantized_operators() -> None:
    """Register PyTorch's part of `torch.ops.quantized_decomposed`."""
    import torch.ao.quantization.fx._decomposed  # noqa: F401


# Decompositions.


def can_decompose(op: OpOverload) -> bool:
    """Whether the operator is composite: made of others, by itself."""
    return op._can_decompose()


def has_meta_kernel(op: OpOverload) -> bool:
    """Whether the operator's results are known from fake operands."""
    return cast(bool, torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "Meta"))


def has_composite_kernel(op: OpOverload) -> bool:
    """Whether C++ or Python registers a kernel CompositeImplicitAutograd."""
    key = DispatchKey.CompositeImplicitAutograd
    in_cpp = torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key.name)
    return key in op.py_kernels or in_cpp


@contextmanager
def composites_seen_by(see: Callable[..., Any], ops: Iterable[OpOverload]) -> Iterator[None]:
    """While Python dispatches, calls of these composite operators, from C++ too, are calls of
    `see(op, own, *args, **kwargs)`, where `own` is the operator's kernel, made of others."""
    key = DispatchKey.CompositeImplicitAutograd
    before = {op: op.py_kernels.get(key) for op in ops}

    def seen(op: OpOverload, own: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: see(op, own, *args, **kwargs)

    try:
        for op, kernel in before.items():
            op.py_kernels[key] = seen(op, kernel or partial(op._op_dk, key))
            op._dispatch_cache.clear()
        yield
    finally:
        for op, kernel in before.items():
            if kernel is None:
                del op.py_kernels[key]
            else:
                op.py_kernels[key] = kernel
            op._dispatch_cache.clear()


def is_preservable_composite(op: OpOverload) -> bool:
    """Whether torch.export can leave a composite whole: its schema tells all that it does."""
    return _is_preservable_cia_op(op)


def reference_linspace(*args: Any, **kwargs: Any) -> torch.Tensor:
    """linspace, made of other operators; ends are numbers or tensors."""
    return _refs.linspace(*args, **kwargs)


@contextmanager
def without_mkldnn() -> Iterator[None]:
    """Decompositions do not choose oneDNN's operators."""
    enabled = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(enabled)


# Graphs.


def codegen_of(graph: Graph) -> CodeGen:
    """What writes the graph's code, and knows its inputs' containers."""
    return graph._codegen


def rename_after_target(node: Node) -> None:
    """Name a call after what it calls, as if it were made anew."""
    node._rename(node.graph._target_to_str(cast(Callable[..., Any], node.target)))


def take_name(node: Node, name: str) -> None:
    """Give a node a name that its graph would not choose, such as `input`."""
    names = node.graph._graph_namespace
    node.name = names._obj_to_name[node] = name
    names._used_names.add(name)


# Exported programs: the public properties read what this writes.

_PARTS = {
    "constants": "_constants",
    "example_inputs": "_example_inputs",
    "graph_module": "_graph_module",
    "graph_signature": "_graph_signature",
    "guards_code": "_guards_code",
    "module_call_graph": "_module_call_graph",
    "range_constraints": "_range_constraints",
    "state_dict": "_state_dict",
    "verifiers": "_verifiers",
}


def set_parts(program: ExportedProgram, **parts: Any) -> None:
    """Replace parts of `program`, named like its properties, in place and unverified."""
    unknown = parts.keys() - _PARTS.keys()
    if unknown:
        expected = ", ".join(sorted(_PARTS))
        raise TypeError(f"set_parts: {', '.join(sorted(unknown))}: no part; expected {expected}")
    for name, value in parts.items():
        setattr(program, _PARTS[name], value)


# Symbols.


def hint_of(number: Any) -> int | None:
    """The value that a SymInt, SymFloat or SymBool had while tracing, if it had one."""
    node = number.node
    return cast("int | None", node._hint if hasattr(node, "_hint") else node.hint)


def bounds_version(shape_env: Any) -> int:
    """A number that changes when the environment learns of its symbols."""
    return cast(int, shape_env._version_counter)


def forget_bounds(shape_env: Any) -> None:
    """Have what is derived from bounds be computed anew."""
    shape_env._version_counter += 1


def line_of_fixed_size(error: BaseException) -> str | None:
    """Where a model took a dynamic size for a number, so that torch.export raised `error`."""
    from torch.fx.experimental.symbolic_shapes import ShapeEnv  # torch.export has loaded it

    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        for frame, _ in traceback.walk_tb(at.__traceback__):
            for value in frame.f_locals.values():
                if isinstance(value, ShapeEnv):
                    found = _line_of_replacement(value)
                    if found is not None:
                        return found
        at = at.__cause__ or at.__context__
    return None


def _line_of_replacement(shape_env: Any) -> str | None:
    for symbol, value in shape_env.replacements.items():
        place = shape_env.replacements_slocs.get(symbol)
        frame = getattr(place, "framework_loc", None)
        if value.is_number and isinstance(frame, traceback.FrameSummary):
            return f"{frame.filename}:{frame.lineno}"
    return None


# Containers: `pytree` is the module; these are the functions that it does not name publicly.

broadcast_to_and_flatten = pytree._broadcast_to_and_flatten
register_pytree_node = pytree._register_pytree_node


# torchao's annotations of a graph to quantize.


def is_marked_annotated(annotation: Any) -> bool:
    """Whether a quantizer has decided on the node of this `QuantizationAnnotation`."""
    return bool(annotation._annotated)


# Modules that torch.compile made.


def original_module(module: Any) -> Any:
    """What `torch.compile` was given, if `module` is what it made of it; `module` otherwise. A
    compiled module has a forward(*args), which hides the arguments' names."""
    return getattr(module, "_orig_mod", module)
