"""Nodes of a graph as a module that the graph calls, and such a module as a program."""

from __future__ import annotations

import operator
from typing import Any, cast

from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx import GraphModule, Node
from torch.fx.passes.tools_common import legalize_graph
from torch.fx.passes.utils.fuser_utils import erase_nodes, fuse_as_graphmodule, insert_subgm

from executorch.exir.graph.program_view import ProgramView
from executorch.exir.make_program import make_program


def create_submodule_from_nodes(
    gm: GraphModule, node_list: list[Node], tag: str, skip_legalize_graph: bool = False
) -> tuple[GraphModule, Node]:
    """Move `node_list` into the submodule `fused_<tag>` of `gm`; returns it and the node that calls
    it, whose fake value is a list, as are the results. `gm` is changed in place. What reads a part
    of a result moves along: results are tensors.

    skip_legalize_graph  the graph's order stays valid, so that it need not be sorted
    """
    wanted = set(node_list)
    for node in gm.graph.nodes:
        if node.target is operator.getitem and node.args[0] in wanted:
            wanted.add(node)
    nodes = [node for node in gm.graph.nodes if node in wanted]
    name = f"fused_{tag}"
    submodule, inputs, outputs = fuse_as_graphmodule(gm, nodes, name, always_return_tuple=True)
    insert_subgm(gm, submodule, inputs, outputs)
    erase_nodes(gm, nodes)
    if not skip_legalize_graph:
        legalize_graph(gm)
        (output,) = gm.graph.find_nodes(op="output")
        next(reversed(gm.graph.nodes)).append(output)  # behind results that nobody reads
    gm.recompile()
    (call,) = gm.graph.find_nodes(op="call_module", target=name)
    output = submodule.graph.output_node()
    results = list(cast("tuple[Node, ...]", output.args[0]))
    output.args = (results,)
    submodule.recompile()
    call.meta["val"] = [node.meta.get("val") for node in results]
    return submodule, call


_STORED = {InputKind.PARAMETER: 0, InputKind.BUFFER: 1, InputKind.CONSTANT_TENSOR: 2}


def _owned(node: Node, program: ExportedProgram, tag: str) -> InputSpec | None:
    """The specification of stored data of `program` that has the tag."""
    if node.meta.get("delegation_tag") != tag:
        return None
    specs = program.graph_signature.input_specs
    found = (s for s in specs if s.kind in _STORED and getattr(s.arg, "name", None) == node.name)
    return next(found, None)


def arrange_graph_placeholders(
    gm: GraphModule, owning_program: ExportedProgram, tag: str
) -> GraphModule:
    """Put the inputs of `gm` in the order of a delegated program, in place: parameters that have
    the tag, buffers that have it, then all others as they were."""
    last = len(_STORED)

    def rank(node: Node) -> int:
        spec = _owned(node, owning_program, tag)
        is_input = spec is None or spec.kind is InputKind.CONSTANT_TENSOR
        return last if is_input else _STORED[spec.kind]  # type: ignore[union-attr]

    for node in reversed(sorted(gm.graph.find_nodes(op="placeholder"), key=rank)):
        first = next(iter(gm.graph.nodes))
        if node is not first:
            first.prepend(node)
    gm.recompile()
    return gm


def arrange_graph_outputs(
    gm: GraphModule, output_specs: list[OutputSpec], call_module_node: Node
) -> GraphModule:
    """Put the next values of buffers before the other results of `gm`, in place; the indices by
    which the graph around reads the results of `call_module_node` follow, and so do the specs."""
    output = gm.graph.output_node()
    results: Any = output.args[0]
    order = sorted(
        range(len(results)), key=lambda i: output_specs[i].kind is not OutputKind.BUFFER_MUTATION
    )
    output.args = ([results[i] for i in order],)
    output_specs[:] = [output_specs[i] for i in order]
    for user in list(call_module_node.users):
        if user.target is operator.getitem:
            user.update_arg(1, order.index(cast("int", user.args[1])))
    values = call_module_node.meta.get("val")
    if values is not None:
        call_module_node.meta["val"] = [values[i] for i in order]
    gm.recompile()
    return gm


def create_exported_program_from_submodule(
    submodule: GraphModule,
    owning_program: ExportedProgram,
    tag: str,
    call_module_node: Node,
    is_submodule: bool,
) -> tuple[ExportedProgram, dict[str, InputSpec], dict[str, OutputSpec]]:
    """A module from `create_submodule_from_nodes` as a program, which owns the stored data that has
    the tag; and what of the owning program's signature goes with it, by name.

    is_submodule  the graph around is a branch of control flow, whose inputs are nobody's own
    """
    arrange_graph_placeholders(submodule, owning_program, tag)
    inputs: list[InputSpec] = []
    taken: dict[str, InputSpec] = {}
    for node in submodule.graph.find_nodes(op="placeholder"):
        spec = None if is_submodule else _owned(node, owning_program, tag)
        argument = TensorArgument(name=node.name)
        if spec is None:
            inputs.append(InputSpec(InputKind.USER_INPUT, argument, None))
        else:
            taken[node.name] = spec
            inputs.append(InputSpec(spec.kind, argument, spec.target, spec.persistent))
    outputs, kept = _output_specs(submodule, owning_program, call_module_node, taken)
    arrange_graph_outputs(submodule, outputs, call_module_node)
    names = {spec.target for spec in taken.values()}
    program = make_program(
        submodule,
        ExportGraphSignature(inputs, outputs),
        {k: v for k, v in owning_program.state_dict.items() if k in names},
        {k: v for k, v in owning_program.constants.items() if k in names},
        owning_program,
    )
    return program, taken, kept


def _output_specs(
    submodule: GraphModule, owner: ExportedProgram, call: Node, taken: dict[str, InputSpec]
) -> tuple[list[OutputSpec], dict[str, OutputSpec]]:
    """Of the results, and of the next values of owned buffers as the owner names them."""
    owned = {spec.target for spec in taken.values()}
    returned: Any = owner.graph.output_node().args[0]
    kept_by_node = {
        value: spec
        for value, spec in zip(returned, owner.graph_signature.output_specs, strict=True)
        if spec.kind is OutputKind.BUFFER_MUTATION and spec.target in owned
    }
    specs: list[OutputSpec] = []
    kept: dict[str, OutputSpec] = {}
    results: Any = submodule.graph.output_node().args[0]
    for i, node in enumerate(results):
        items = [u for u in call.users if u.target is operator.getitem and u.args[1] == i]
        found = [(item, kept_by_node[item]) for item in items if item in kept_by_node]
        is_read_only_there = found and all(
            list(item.users) == [owner.graph.output_node()] for item in items
        )
        argument = TensorArgument(name=node.name)
        if is_read_only_there:
            item, spec = found[0]
            kept[item.name] = spec
            specs.append(OutputSpec(OutputKind.BUFFER_MUTATION, argument, spec.target))
        else:
            specs.append(OutputSpec(OutputKind.USER_OUTPUT, argument, None))
    return specs, kept


def insert_lowered_call(owner: ExportedProgram, call: Node, lowered: Any) -> None:
    """Put a delegate call in place of the call of a submodule, whose program `lowered` is, in
    place; what the delegate owns leaves the program around."""
    from executorch.exir.delegate import LOWERED_PREFIX, executorch_call_delegate

    graph, module = call.graph, cast("GraphModule", call.graph.owning_module)
    signature = lowered.original_module.graph_signature
    given = {node.name: node for node in call.all_input_nodes}
    n_kept = len(signature.buffers_to_mutate)
    number = sum(name.startswith(LOWERED_PREFIX) for name, _ in module.named_children())
    name = f"{LOWERED_PREFIX}{number}"
    module.add_module(name, lowered)
    with graph.inserting_before(call):
        attribute = graph.get_attr(name)
        inputs = [given[name] for name in signature.user_inputs]
        new = graph.call_function(executorch_call_delegate, (attribute, *inputs))
    new.meta["val"] = call.meta["val"][n_kept:]
    _drop_kept(owner, call.meta.get("toplevel_output_specs_to_delete", {}))
    for item in list(call.users):
        index = cast("int", item.args[1])
        if index < n_kept:
            graph.erase_node(item)
        else:
            item.args = (new, index - n_kept)
    graph.erase_node(call)
    module.delete_submodule(str(call.target))
    _drop_owned(owner, call.meta.get("toplevel_input_specs_to_delete", {}))
    module.recompile()


def _drop_kept(owner: ExportedProgram, kept: dict[str, OutputSpec]) -> None:
    """Take next values of buffers out of the outputs."""
    view = ProgramView(owner)
    left = [(s, v) for s, v in view.outputs if getattr(v, "name", None) not in kept]
    owner.graph.output_node().args = (tuple(value for _, value in left),)
    view.update_outputs([spec for spec, _ in left])


def _drop_owned(owner: ExportedProgram, owned: dict[str, InputSpec]) -> None:
    """Take stored data that nobody else reads out of inputs, signature and program."""
    for node in owner.graph.find_nodes(op="placeholder"):
        if node.name in owned and not node.users:
            owner.graph.erase_node(node)
    ProgramView(owner).update_inputs()
