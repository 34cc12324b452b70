"""Computes ahead of time what depends on constants only."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument
from torch.fx import Node
from torch.fx.node import map_arg

from executorch.exir.dialects._ops import ops
from executorch.exir.dialects.edge._ops import EdgeOpOverload
from executorch.exir.graph.operator_kind import makes_contiguous, overload_of
from executorch.exir.graph.pass_driver import Pass
from executorch.exir.graph.program_view import Dialect, ProgramView
from executorch.exir.graph_module import is_control_flow
from executorch.exir.passes.remove_dead_code import remove_dead_code
from executorch.exir.passes.written_memory import written_memory
from executorch.exir.torch_internals import detect_fake_mode, pytree, schema_of, set_parts

_log = logging.getLogger(__name__)

_PREFIX = "_prop_tensor_constant"


class ConstPropPass(Pass):
    """Replace calls that depend on constants only by their results, but in control flow.

    skip  operators to leave; default: those that make much data out of little
    """

    takes = frozenset({Dialect.ATEN, Dialect.EDGE})

    def __init__(self, skip: set[EdgeOpOverload] | None = None) -> None:
        self.skip = skip

    def edit(self, view: ProgramView) -> bool:
        assert view.program is not None
        if any(map(is_control_flow, view.graph.nodes)):
            _log.warning("constant_prop_pass folds nothing inside of control flow")
        skip = default_skip_targets() if self.skip is None else self.skip
        return replace_by_constants(view, get_propagated_const_tensor_dict(view.program, skip))


def constant_prop_pass(
    exported_program: ExportedProgram,
    custom_skip_targets: set[EdgeOpOverload] | None = None,
    _skip_dim_order: bool = True,
) -> ExportedProgram:
    """`ConstPropPass` on `exported_program` itself, which is returned."""
    ConstPropPass(custom_skip_targets)(exported_program)
    return exported_program


def get_default_skip_targets_no_quant() -> set[EdgeOpOverload]:
    """Operators that make large constants from nothing."""
    aten = ops.edge.aten
    return {aten.full.default, aten.full_like.default, aten.arange.start_step}


def default_skip_targets() -> set[EdgeOpOverload]:
    """Those, and dequantization, which would undo the compression of weights."""
    quantized = torch.ops.quantized_decomposed
    names = ("dequantize_per_tensor", "dequantize_per_channel", "dequantize_per_token")
    found = {
        getattr(ops.edge.quantized_decomposed, n).default for n in names if hasattr(quantized, n)
    }
    return get_default_skip_targets_no_quant() | found


def is_constant_buffer(program: ExportedProgram, node: Node) -> bool:
    """Whether `node` reads a buffer that no method call changes."""
    view = ProgramView(program)
    return node in view.stored and view.inputs[node].kind is InputKind.BUFFER


def get_constant_placeholder_dict(exported_program: ExportedProgram) -> OrderedDict[Node, Tensor]:
    """Placeholder -> tensor, of all parameters, unchanged buffers and constants."""
    return OrderedDict(ProgramView(exported_program).stored)


def is_const(
    arg: Any, exported_program: ExportedProgram, const_node_to_tensor: Mapping[Node, Tensor]
) -> bool:
    """Whether an argument is known ahead of time."""
    leaves = pytree.tree_leaves(arg, is_leaf=lambda a: isinstance(a, Node))
    return all(not isinstance(a, Node) or a in const_node_to_tensor for a in leaves)


def get_data(
    arg: Any, exported_program: ExportedProgram, const_node_to_tensor: Mapping[Node, Tensor]
) -> Any:
    """An argument with constants in place of nodes."""
    return map_arg(arg, lambda n: const_node_to_tensor[n])


def get_propagated_const_tensor_dict(
    exported_program: ExportedProgram, custom_skip_targets: set[EdgeOpOverload] | None
) -> OrderedDict[Node, Tensor]:
    """Node -> tensor, of all constants and of all calls that depend on them only. What a call
    writes in place is no constant, nor is what shares its memory."""
    skip = {overload_of(target) for target in custom_skip_targets or ()}
    written = written_memory(exported_program.graph_module, _memory)
    known = get_constant_placeholder_dict(exported_program)
    for node in exported_program.graph.nodes:
        op = overload_of(node.target) if node.op == "call_function" else None
        if _memory(node) in written:
            known.pop(node, None)
            continue
        if op is None or op in skip or schema_of(op).is_mutable:
            continue
        if torch.Tag.nondeterministic_seeded in op.tags:
            continue
        arguments = (node.args, node.kwargs)
        if not node.all_input_nodes or not is_const(arguments, exported_program, known):
            continue
        with torch.no_grad():
            args, kwargs = get_data(arguments, exported_program, known)
            result = node.target(*args, **kwargs)
        if isinstance(result, Tensor):
            expanded = any(
                s == 0 and n > 1 for s, n in zip(result.stride(), result.shape, strict=True)
            )
            known[node] = result.contiguous() if expanded else result
    return known


def _memory(node: Node) -> Node:
    """The node whose memory `node` shares: the input that an operator of views looks at."""
    while node.op == "call_function" and (op := overload_of(node.target)) is not None:
        shared = [
            node.args[i]
            for i, argument in enumerate(schema_of(op).arguments[: len(node.args)])
            if argument.alias_info is not None
        ]
        if len(shared) != 1 or not isinstance(shared[0], Node):
            break
        node = shared[0]
    return node


def get_first_user_input(exported_program: ExportedProgram) -> Node:
    """The placeholder before which constants belong; the first other node if there is none."""
    return ProgramView(exported_program).first_input


def get_fake_mode(exported_program: ExportedProgram) -> Any:
    """The fake mode of the program's values."""
    mode = detect_fake_mode([n.meta.get("val") for n in exported_program.graph.nodes])
    if mode is None:
        raise ValueError("the program has no fake values")
    return mode


def replace_with_constant_node(
    node: Node,
    prop_constant_tensor: Tensor,
    first_user_input: Node,
    fake_mode: Any,
    exported_program: ExportedProgram,
) -> tuple[Node, str]:
    """Make `node` a constant placeholder; the new node and its name in the program's constants."""
    number = len(exported_program.constants)
    while (fqn := f"{_PREFIX}{number}") in exported_program.constants:
        number += 1
    exported_program.constants[fqn] = prop_constant_tensor
    with exported_program.graph.inserting_before(first_user_input):
        constant = exported_program.graph.placeholder(fqn)
    constant.meta = {k: v for k, v in node.meta.items() if k != "spec"}
    constant.meta["val"] = fake_mode.from_tensor(prop_constant_tensor, static_shapes=True)
    if makes_contiguous(node):
        constant.meta["val"] = constant.meta["val"].contiguous()
    node.replace_all_uses_with(constant)
    exported_program.graph.erase_node(node)
    return constant, fqn


def create_constant_nodes_and_return_specs(
    const_node_to_tensor: Mapping[Node, Tensor], exported_program: ExportedProgram
) -> dict[str, InputSpec]:
    """Make the calls among the nodes placeholders; name -> specification of each new one."""
    specs: dict[str, InputSpec] = {}
    if not const_node_to_tensor:  # a program without tensors has no fake mode
        return specs
    first_input = get_first_user_input(exported_program)
    mode = get_fake_mode(exported_program)
    for node, tensor in const_node_to_tensor.items():
        if node.op == "placeholder" or all(u in const_node_to_tensor for u in node.users):
            continue
        constant, fqn = replace_with_constant_node(
            node, tensor, first_input, mode, exported_program
        )
        argument = TensorArgument(name=constant.name)
        specs[constant.name] = InputSpec(InputKind.CONSTANT_TENSOR, argument, fqn, True)
    return specs


def erase_constant_node(exported_program: ExportedProgram, node: Node) -> None:
    """Remove an unused constant placeholder, and its tensor."""
    signature = exported_program.graph_signature
    for names in (signature.inputs_to_parameters, signature.inputs_to_buffers):
        if node.name in names:
            exported_program.state_dict.pop(names[node.name], None)
            exported_program.constants.pop(names[node.name], None)
    if node.name in signature.inputs_to_lifted_tensor_constants:
        exported_program.constants.pop(signature.inputs_to_lifted_tensor_constants[node.name], None)
    exported_program.graph.erase_node(node)


def replace_by_constants(view: ProgramView, tensors: Mapping[Node, Tensor]) -> bool:
    """Make the calls among the nodes constants, and drop constants that are read no more; true if
    there were any."""
    program, candidates = view.program, list(view.stored)
    assert program is not None
    set_parts(program, constants=dict(program.constants))  # which other programs may share
    new = create_constant_nodes_and_return_specs(tensors, program)
    if not new:
        return False
    remove_dead_code(view.graph_module)
    for node in candidates:
        if not node.users:
            program.graph.erase_node(node)
    view.update_inputs(new)
    return True
