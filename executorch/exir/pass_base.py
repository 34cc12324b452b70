"""Bases of passes that users write.

An `ExportPass` runs the graph again on fake tensors, node by node, and records what its hooks call:
a subclass overrides the hooks of the nodes it wants to change and calls `super()` for the rest.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Protocol, TypeVar

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.fx import traceback as fx_traceback
from torch.fx.passes.infra.pass_base import PassBase, PassResult

from executorch.exir.dialects.edge._ops import EdgeOpOverload
from executorch.exir.graph.pass_driver import ExportedProgramPassResult as ExportedProgramPassResult
from executorch.exir.proxy_value import ExportPassBaseError, NodeMetadata, ProxyValue
from executorch.exir.torch_internals import (
    FakeTensor,
    FakeTensorMode,
    HigherOrderOperator,
    OpOverload,
    codegen_of,
    detect_fake_mode,
    enable_python_dispatcher,
    pytree,
    schema_of,
)

Argument = Any
Value = Any
Fn = Callable[..., Any]
K = TypeVar("K")
PassType = Any  # ExportedProgramPassBase | Callable[[GraphModule], PassResult | None]


class ExportedProgramPassBase(ABC):
    """A pass over a whole exported program: graph, signature, state."""

    def __call__(self, exported_program: ExportedProgram) -> ExportedProgramPassResult:
        self.requires(exported_program)
        result = self.call(exported_program)
        self.ensures(result.exported_program)
        return result

    @abstractmethod
    def call(self, exported_program: ExportedProgram) -> ExportedProgramPassResult:
        """Transform the program; it may be edited in place."""

    def requires(self, exported_program: ExportedProgram) -> None:  # noqa: B027
        """Raise if the program is not one this pass can take."""

    def ensures(self, exported_program: ExportedProgram) -> None:  # noqa: B027
        """Raise if the result is not what this pass promises."""


class ArgSchema(Protocol):
    """What a function over arguments sees of an argument's schema."""

    name: str
    kwarg_only: bool
    type: Any


def map_args(
    op: OpOverload, fn: Fn, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Apply `fn(value, argument schema)` to the arguments of a call of `op`."""
    arguments = schema_of(op).arguments
    positional = tuple(fn(a, arguments[i]) if i < len(arguments) else a for i, a in enumerate(args))
    by_name = {a.name: a for a in arguments}
    return positional, {k: fn(v, by_name[k]) if k in by_name else v for k, v in kwargs.items()}


def _data(tree: Any) -> Any:
    return pytree.tree_map_only(ProxyValue, lambda p: p.data, tree)


def _proxies(tree: Any) -> Any:
    return pytree.tree_map_only(ProxyValue, lambda p: p.proxy, tree)


class ExportTracer(fx.Tracer):
    """Builds the new graph of one graph module."""

    def __init__(self, callback: ExportPass, codegen: fx.graph.CodeGen) -> None:
        super().__init__()
        self.callback = callback
        self.root = torch.nn.Module()
        self.graph = fx.Graph()
        self.graph.set_codegen(codegen)
        self.constants: dict[int, str] = {}
        self.fake_tensor_mode: FakeTensorMode | None = None
        self.submodules: dict[Any, str] = {}

    def create_arg(self, a: Any) -> Any:
        if isinstance(a, torch.nn.Module):
            if a not in self.submodules:
                self.submodules[a] = name = f"submodule_{len(self.submodules)}"
                self.root.add_module(name, a)
            return self.create_node("get_attr", self.submodules[a], (), {})
        if isinstance(a, FakeTensor):
            raise ExportPassBaseError("a fake tensor cannot be a constant of the graph")
        if isinstance(a, torch.Tensor):
            return self._constant(a)
        if isinstance(a, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            if a.node.constant is not None:
                return a.node.constant
            raise ExportPassBaseError(
                f"symbolic number {a} has no node in the graph; use the ProxyValue of a sym op"
            )
        if isinstance(a, (OpOverload, EdgeOpOverload, HigherOrderOperator)):
            return a
        return super().create_arg(a)

    def _constant(self, tensor: torch.Tensor) -> fx.Node:
        name = self.constants.get(id(tensor))
        if name is None:
            name = self.constants[id(tensor)] = f"_tensor_constant{len(self.constants)}"
            self.root.register_buffer(name, tensor)
        node = self.create_node("get_attr", name, (), {})
        mode = self.fake_tensor_mode
        node.meta["val"] = mode.from_tensor(tensor, static_shapes=True) if mode else tensor
        return node


class ExportInterpreter(fx.Interpreter):
    """Runs a graph and hands every node to the pass's hooks."""

    def __init__(self, callback: ExportPass, gm: fx.GraphModule) -> None:
        super().__init__(gm, garbage_collect_values=False)
        self.callback = callback
        self.meta = NodeMetadata({})

    def run_node(self, n: fx.Node) -> Any:
        self.meta = NodeMetadata({k: v for k, v in n.meta.items() if k not in ("val", "spec")})
        self.callback.node_debug_str = n.format_node()
        with fx_traceback.preserve_node_meta(), fx_traceback.set_current_meta(n):
            return super().run_node(n)

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> ProxyValue:
        arg = super().placeholder(target, args, kwargs)
        return self.callback.placeholder(str(target), arg, self.meta)

    def output(self, target: Any, args: Any, kwargs: Any) -> ProxyValue:
        return self.callback.output(args[0], self.meta)

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        attribute = super().get_attr(target, args, kwargs)
        self.callback.on_attr(attribute)
        return self.callback.get_attr(attribute, str(target), self.meta)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        raise ExportPassBaseError(f"call_module of {target} is not part of an exported graph")

    def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
        raise ExportPassBaseError(f"call_method of {target} is not part of an exported graph")

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        callback, meta = self.callback, self.meta
        if target is operator.getitem:
            return callback.call_getitem(args[0], args[1], meta)
        if isinstance(target, (OpOverload, EdgeOpOverload)):
            return callback.call_operator(target, args, kwargs, meta)
        if isinstance(target, HigherOrderOperator):
            return self._call_higher_order(target, args, kwargs)
        if _is_symbolic(target):
            return callback.call_sym(target, args, meta)
        return callback.call_operator(target, args, kwargs, meta)

    def _call_higher_order(self, target: Any, args: Any, kwargs: Any) -> Any:
        callback, meta = self.callback, self.meta
        name = target.__name__
        if name == "cond":
            return callback.call_cond(args[0], args[1], args[2], list(args[3]), meta)
        if name == "map_impl":
            return callback.call_map(args[0], list(args[1]), list(args[2]), meta)
        if name == "scan":
            init, xs, extra = map(list, args[1:4])
            return callback.call_scan(args[0], init, xs, extra, meta)
        if name == "while_loop":
            carried, extra = map(list, args[2:4])
            return callback.call_while(args[0], args[1], carried, extra, meta)
        if name == "executorch_call_delegate":
            return callback.call_delegate(args[0], args[1:], kwargs, meta)
        return callback._fx("call_function", target, args, kwargs, meta)


_SYMBOLIC_MODULES = ("_operator", "math", "builtins", "torch")


def _is_symbolic(target: Any) -> bool:
    return getattr(target, "__module__", None) in _SYMBOLIC_MODULES


class ExportPass(PassBase):
    """Re-traces a graph through hooks.

    Every hook gets ProxyValues and emits nodes by calling hooks of `super()`; what it returns is
    what the users of the old node see. Metadata (stack traces, module stacks, debug handles) goes
    from `meta` to every node emitted with it; fake values are computed anew. Control flow
    sub-graphs are traced by the same pass.
    """

    def __init__(self) -> None:
        super().__init__()
        self.tracer = ExportTracer(self, fx.graph.CodeGen())
        self.interpreter = fx.Interpreter(fx.GraphModule(torch.nn.Module(), fx.Graph()))
        self.fake_tensor_mode: FakeTensorMode | None = None
        self.node_debug_str: str | None = None
        self._initialized = True

    # Hooks.

    def placeholder(self, name: str, arg: Argument, meta: NodeMetadata) -> ProxyValue:
        """An input; `arg` is its fake value."""
        proxy = self.tracer.create_proxy("placeholder", name, (), {})
        proxy.node.meta = dict(meta.data)
        proxy.node.meta["val"] = arg
        return ProxyValue(arg, proxy)

    def output(self, results: list[Argument], meta: NodeMetadata) -> ProxyValue:
        """The graph's results."""
        return self._fx("output", "output", (results,), {}, meta)

    def call_operator(
        self, op: Any, args: tuple[Argument, ...], kwargs: dict[str, Argument], meta: NodeMetadata
    ) -> ProxyValue:
        """An operator call; call it on `super()` to emit one."""
        return self._fx("call_function", op, args, kwargs, meta)

    def call_sym(self, target: Fn, args: tuple[Argument, ...], meta: NodeMetadata) -> ProxyValue:
        """Arithmetic on symbolic numbers."""
        return self._fx("call_function", target, args, {}, meta)

    def call_size_operator(
        self, tensor_proxy: ProxyValue, dim: int, meta: NodeMetadata, *, edge_dialect: bool = False
    ) -> ProxyValue | int:
        """Size of one dimension as an argument: a number, or the value of a `sym_size.int` that is
        emitted, of the edge dialect if asked for."""
        size = tensor_proxy.to_tensor().shape[dim]
        if not isinstance(size, torch.SymInt):
            return int(size)
        target: Any = torch.ops.aten.sym_size.int
        if edge_dialect:
            from executorch.exir.dialects._ops import ops

            target = ops.edge.aten.sym_size.int
        return self._fx("call_function", target, (tensor_proxy, dim), {}, meta)

    def call_size_operator_all(
        self, tensor_proxy: ProxyValue, meta: NodeMetadata, *, edge_dialect: bool = False
    ) -> list[ProxyValue | int]:
        """`call_size_operator` of every dimension."""
        dims = range(tensor_proxy.to_tensor().dim())
        return [
            self.call_size_operator(tensor_proxy, d, meta, edge_dialect=edge_dialect) for d in dims
        ]

    def should_preserve_symbolic_input_metadata(self) -> bool:
        """Whether the pass promises that dynamic sizes of inputs stay the same symbols."""
        return True

    def call_getitem(self, value: ProxyValue, key: int, meta: NodeMetadata) -> ProxyValue:
        """One result of an operator that has several."""
        return self._fx("call_function", operator.getitem, (value, key), {}, meta)

    def call_cond(
        self,
        pred: ProxyValue,
        true_fn: fx.GraphModule,
        false_fn: fx.GraphModule,
        inputs: list[Argument],
        meta: NodeMetadata,
    ) -> ProxyValue:
        branches = [self._traced(fn, tuple(inputs)) for fn in (true_fn, false_fn)]
        cond = torch.ops.higher_order.cond
        return self._fx("call_function", cond, (pred, *branches, list(inputs)), {}, meta)

    def call_map(
        self,
        f: fx.GraphModule,
        mapped_args: list[ProxyValue],
        operands: list[ProxyValue],
        meta: NodeMetadata,
    ) -> ProxyValue:
        slices = [_first_slice(xs) for xs in mapped_args]
        body = self._traced(f, (*slices, *operands))
        target = torch.ops.higher_order.map_impl
        return self._fx("call_function", target, (body, mapped_args, operands), {}, meta)

    def call_scan(
        self,
        combine_fn: fx.GraphModule,
        init: list[ProxyValue],
        xs: list[Argument],
        additional_inputs: list[ProxyValue],
        meta: NodeMetadata,
    ) -> ProxyValue:
        body = self._traced(combine_fn, (*init, *map(_first_slice, xs), *additional_inputs))
        args = (body, init, xs, additional_inputs)
        return self._fx("call_function", torch.ops.higher_order.scan, args, {}, meta)

    def call_while(
        self,
        cond_fn: fx.GraphModule,
        body_fn: fx.GraphModule,
        carried_inputs: list[ProxyValue],
        additional_inputs: list[ProxyValue],
        meta: NodeMetadata,
    ) -> ProxyValue:
        inputs = (*carried_inputs, *additional_inputs)
        traced = [self._traced(fn, inputs) for fn in (cond_fn, body_fn)]
        args = (*traced, tuple(carried_inputs), tuple(additional_inputs))
        return self._fx("call_function", torch.ops.higher_order.while_loop, args, {}, meta)

    def call_delegate(
        self,
        lowered_module: Any,
        args: tuple[ProxyValue, ...],
        kwargs: dict[str, Any],
        meta: NodeMetadata,
    ) -> ProxyValue:
        """A call of a part that was handed to a backend."""
        target = torch.ops.higher_order.executorch_call_delegate
        return self._fx("call_function", target, (lowered_module, *args), kwargs, meta)

    def get_attr(self, attr: Any, name: str, meta: NodeMetadata) -> Any:
        """An attribute of the graph module: a constant, or the sub-graph of an operator."""
        return attr

    def on_attr(self, attr: Any) -> None:
        """Told of every attribute read."""

    def inputs(self, graph_module: fx.GraphModule) -> list[Argument]:
        """The fake values to run `graph_module` on."""
        values = []
        for node in graph_module.graph.find_nodes(op="placeholder"):
            if "val" in node.meta:
                values.append(node.meta["val"])
            elif node.args:
                values.append(node.args[0])
            else:
                raise ExportPassBaseError(
                    f"placeholder {node} has no value in meta['val']; run shape propagation first"
                )
        return values

    def call_submodule(self, graph_module: fx.GraphModule, inputs: tuple[Any, ...]) -> PassResult:
        """Trace `graph_module` on `inputs` into a new graph module."""
        outer = self.tracer, self.interpreter
        self.tracer = ExportTracer(self, codegen_of(graph_module.graph))
        self.tracer.fake_tensor_mode = self.fake_tensor_mode
        self.interpreter = interpreter = ExportInterpreter(self, graph_module)
        flat = pytree.tree_map_only(ProxyValue, lambda p: p.data, list(inputs))
        try:
            interpreter.run(*flat, enable_io_processing=False)
            traced = fx.GraphModule(self.tracer.root, self.tracer.graph)
        finally:
            self.tracer, self.interpreter = outer
        traced.meta.update(graph_module.meta)
        return PassResult(traced, True)

    def call(self, graph_module: fx.GraphModule) -> PassResult:
        if not getattr(self, "_initialized", False):
            raise ExportPassBaseError(
                f"{type(self).__name__}.__init__ must call super().__init__()"
            )
        inputs = self.inputs(graph_module)
        mode = detect_fake_mode(inputs)
        self.fake_tensor_mode = mode or FakeTensorMode()
        try:
            result = self.call_submodule(graph_module, tuple(inputs))
            if self.should_preserve_symbolic_input_metadata():
                _check_symbolic_inputs(inputs, result.graph_module)
            return result
        except Exception as error:
            if self.node_debug_str is not None and hasattr(error, "add_note"):
                error.add_note(f"{type(self).__name__}, at node: {self.node_debug_str}")
            raise

    # Emission.

    def _traced(self, fn: fx.GraphModule, inputs: tuple[Argument, ...]) -> fx.GraphModule:
        return self.call_submodule(fn, inputs).graph_module

    def _fx(
        self,
        kind: str,
        target: Any,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        meta: NodeMetadata,
    ) -> ProxyValue:
        value = self._value(kind, target, args, kwargs)
        proxy = self.tracer.create_proxy(kind, target, _proxies(args), _proxies(kwargs))
        inherited = meta.data if isinstance(meta, NodeMetadata) else dict(meta)
        proxy.node.meta = {k: v for k, v in inherited.items() if k != "tensor_meta"}
        proxy.node.meta["val"] = value
        return ProxyValue(value, proxy)

    def _value(self, kind: str, target: Any, args: Any, kwargs: Any) -> Any:
        """The fake result. Only here is the fake mode on: tensors that hooks make are constants."""
        args, kwargs = _data(args), _data(kwargs)
        if kind == "output":
            return args[0]
        mode = self.fake_tensor_mode
        if mode is None:
            return target(*args, **kwargs)
        allowed, mode.allow_non_fake_inputs = mode.allow_non_fake_inputs, True
        try:
            dispatcher = enable_python_dispatcher() if mode.shape_env else nullcontext()
            with mode, dispatcher, torch.no_grad():
                return target(*args, **kwargs)
        finally:
            mode.allow_non_fake_inputs = allowed


def _check_symbolic_inputs(before: list[Any], graph_module: fx.GraphModule) -> None:
    """ExportPassBaseError where an input with dynamic sizes has others after the pass."""
    placeholders = graph_module.graph.find_nodes(op="placeholder")
    after = [node.meta.get("val") for node in placeholders]
    for i, value in enumerate(before):
        known = _symbols(value)
        if known and (i >= len(after) or _symbols(after[i]) != known):
            raise ExportPassBaseError(
                f"Input at position {i} did not preserve symbolic metadata across pass replay."
            )


def _symbols(value: Any) -> list[str] | None:
    """The sizes of a tensor with dynamic ones, as text."""
    if not isinstance(value, torch.Tensor):
        return None
    if not any(isinstance(size, torch.SymInt) for size in value.shape):
        return None
    return [str(size) for size in value.shape]


def _first_slice(mapped: Any) -> Any:
    return mapped.data[0] if isinstance(mapped, ProxyValue) else mapped[0]


_ExportPassBase = ExportPass
ExportPass.ExportTracer = ExportTracer  # type: ignore[attr-defined]
ExportPass.ExportInterpreter = ExportInterpreter  # type: ignore[attr-defined]
