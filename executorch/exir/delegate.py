"""`torch.ops.higher_order.executorch_call_delegate`: calls a sub-graph that a backend has taken."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode, track_tensor_tree

from executorch.exir.graph.operator_kind import is_delegate_call
from executorch.exir.torch_internals import (
    DispatchKey,
    FakeTensorMode,
    HigherOrderOperator,
    autograd_not_implemented,
    pytree,
)

LOWERED_PREFIX = "lowered_module_"


class ExecutorchCallDelegate(HigherOrderOperator):
    """(lowered_module, *inputs) -> results of the lowered module's original program."""

    def __init__(self) -> None:
        super().__init__("executorch_call_delegate")

    def __call__(self, lowered_module: Any, *args: Any) -> Any:
        return super().__call__(lowered_module, *args)


executorch_call_delegate = ExecutorchCallDelegate()
executorch_call_delegate.py_autograd_impl(
    autograd_not_implemented(executorch_call_delegate, deferred_error=True)
)


@executorch_call_delegate.py_impl(DispatchKey.CompositeExplicitAutograd)
def _call(lowered_module: Any, *args: Any) -> Any:
    return lowered_module.run_original(*args)


@executorch_call_delegate.py_impl(FakeTensorMode)
def _call_fake(mode: FakeTensorMode, lowered_module: Any, *args: Any) -> Any:
    with mode:
        return lowered_module.run_original(*args)


@executorch_call_delegate.py_impl(ProxyTorchDispatchMode)
def _trace(mode: Any, lowered_module: Any, *args: Any) -> Any:
    result = executorch_call_delegate(lowered_module, *args)
    lowered_module = getattr(lowered_module, "lowered", lowered_module)  # what Dynamo saw
    name = add_lowered_module(mode.tracer.root, lowered_module)
    proxies = pytree.tree_map(mode.tracer.unwrap_proxy, args)
    module = mode.tracer.create_proxy("get_attr", name, (), {}, name=name)
    call = mode.tracer.create_proxy(
        "call_function", executorch_call_delegate, (module, *proxies), {}
    )
    return track_tensor_tree(result, call, constant=None, tracer=mode.tracer)


@executorch_call_delegate.py_functionalize_impl
def _functionalize(ctx: Any, lowered_module: Any, *args: Any) -> Any:
    with ctx.redispatch_to_next():
        result = executorch_call_delegate(lowered_module, *ctx.unwrap_tensors(args))
        return ctx.wrap_tensors(result)


def add_lowered_module(root: torch.nn.Module, lowered_module: Any) -> str:
    """The attribute of `root` that holds the lowered module, which is added if there is none."""
    taken = dict(root.named_children())
    for name, module in taken.items():
        if module is lowered_module:
            return name
    name = f"{LOWERED_PREFIX}{sum(n.startswith(LOWERED_PREFIX) for n in taken)}"
    while name in taken:
        name += "_"
    root.add_module(name, lowered_module)
    return name


def is_lowered_module(obj: Any) -> bool:
    return type(obj).__name__ == "LoweredBackendModule"


def get_lowered_module_name(root: torch.nn.Module, lowered_module: Any) -> str:
    """As `add_lowered_module`."""
    return add_lowered_module(root, lowered_module)


def delegate_calls(graph: Graph) -> list[Node]:
    """The calls of lowered modules, in order."""
    return [n for n in graph.nodes if n.op == "call_function" and is_delegate_call(n)]


def lowered_module_of(call: Node, graph_module: GraphModule) -> Any:
    """The LoweredBackendModule that a delegate call calls."""
    return getattr(graph_module, str(call.args[0].target))  # type: ignore[union-attr]
