from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ExportGraphSignature,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx import GraphModule, Node

from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.graph.graph_edit import provenance
from executorch.exir.graph.operator_kind import is_inplace, overload_of, written_arguments
from executorch.exir.torch_internals import set_parts

_MUTATIONS = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)


def insert_write_back_for_buffers_pass(
    program: ExportedProgram,
) -> tuple[GraphModule, ExportGraphSignature]:
    """Store the new values of mutated buffers and inputs where the old ones are, in place.

    Before    output(new, y), the signature says that `new` is the next value of buffer b
    After     c = aten.copy_(b, new); output(c, y)
    Requires  a functional graph: b has its old value wherever it is read.
    Ensures   every value that the output or a later write needs is read before it is overwritten:
              a buffer that is itself such a value is cloned first.
    Leaves    new values that an in-place operator already wrote into b.
    """
    graph_module, signature = program.graph_module, program.graph_signature
    graph = graph_module.graph
    output = graph.output_node()
    results = list(output.args[0])  # type: ignore[arg-type]
    by_name = {n.name: n for n in graph.find_nodes(op="placeholder")}
    by_target = {s.target: by_name[s.arg.name] for s in signature.input_specs if s.target}

    writes: dict[int, Node] = {}  # output position to the node written
    for i, spec in enumerate(signature.output_specs):
        if spec.kind in _MUTATIONS:
            buffer = by_target.get(spec.target) or by_name.get(str(spec.target))
            if buffer is None:
                raise ValueError(f"output {i}: the signature names {spec.target!r}, no input does")
            if not _is_written_in_place(results[i], buffer):
                writes[i] = buffer
    if not writes:
        return graph_module, signature

    written: set[Node] = set(writes.values())
    with graph.inserting_before(output):
        _clone_overwritten(results, writes, written)
        for i, buffer in writes.items():
            value = results[i]
            copy = graph.call_function(torch.ops.aten.copy_.default, (buffer, value))
            source = provenance(value) if isinstance(value, Node) else {}
            copy.meta = {**source, "val": buffer.meta["val"]}
            results[i] = copy
    output.args = (tuple(results),)
    specs = [
        OutputSpec(s.kind, TensorArgument(name=results[i].name), s.target) if i in writes else s
        for i, s in enumerate(signature.output_specs)
    ]
    specs = [
        OutputSpec(s.kind, TensorArgument(name=r.name), s.target)
        if isinstance(s.arg, TensorArgument) and isinstance(r, Node)
        else s
        for s, r in zip(specs, results, strict=True)
    ]
    set_parts(program, graph_signature=ExportGraphSignature(signature.input_specs, specs))
    graph_module.recompile()
    return graph_module, program.graph_signature


def _is_written_in_place(value: object, buffer: Node) -> bool:
    if not isinstance(value, Node) or value.op != "call_function":
        return value is buffer
    op = overload_of(value.target)
    return op is not None and is_inplace(op) and written_arguments(value, op) == [buffer]


def _clone_overwritten(results: list[object], writes: dict[int, Node], written: set[Node]) -> None:
    """Replace results that are old values of written memory by clones, made before any write."""
    clones: dict[Node, Node] = {}
    for i, value in enumerate(results):
        if not isinstance(value, Node) or _root(value) not in written or writes.get(i) is value:
            continue
        if value not in clones:
            fake = value.meta["val"]
            clone = value.graph.call_function(
                exir_ops.edge.dim_order_ops._clone_dim_order.default,
                (value,),
                {"dim_order": list(fake.dim_order())},
            )
            clone.meta = {**provenance(value), "val": fake.clone()}
            clones[value] = clone
        results[i] = clones[value]


def _root(node: Node) -> Node:
    """The node whose memory a chain of view copies may come to share."""
    while node.op == "call_function" and "view_copy" in getattr(node.target, "__name__", ""):
        base = node.args[0]
        if not isinstance(base, Node):
            break
        node = base
    return node
