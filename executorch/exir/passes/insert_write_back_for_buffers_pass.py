from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature
from torch.fx import GraphModule, Node

from executorch.exir.graph.graph_edit import provenance
from executorch.exir.graph.operator_kind import is_inplace, overload_of, written_arguments
from executorch.exir.graph.pass_driver import Pass
from executorch.exir.graph.program_view import MUTATIONS, Dialect, ProgramView
from executorch.exir.passes.written_memory import clone_of, memory_of


class InsertWriteBackForBuffers(Pass):
    """Store the new values of mutated buffers and inputs where the old ones are.

    Before    output(new, y), the signature says that `new` is the next value of buffer b
    After     c = aten.copy_(b, new); output(c, y)
    Requires  a functional graph: b has its old value wherever it is read.
    Ensures   every value that the output or a later write needs is read before it is overwritten:
              a buffer that is itself such a value is cloned first.
    Leaves    new values that an in-place operator already wrote into b.
    """

    takes = frozenset({Dialect.EDGE, Dialect.BACKEND})
    gives = Dialect.BACKEND

    def edit(self, view: ProgramView) -> bool:
        results = [value for _, value in view.outputs]
        writes = {}  # output position to the node written
        for i, (spec, value) in enumerate(view.outputs):
            if spec.kind in MUTATIONS:
                buffer = view.placeholders.get(str(spec.target))
                if buffer is None:
                    raise ValueError(
                        f"output {i}: the signature names {spec.target!r}, no input does"
                    )
                if not _is_written_in_place(value, buffer):
                    writes[i] = buffer
        if not writes:
            return False
        output = view.graph.output_node()
        with view.graph.inserting_before(output):
            _clone_overwritten(results, writes, set(writes.values()))
            for i, buffer in writes.items():
                value = results[i]
                copy = view.graph.call_function(torch.ops.aten.copy_.default, (buffer, value))
                source = provenance(value) if isinstance(value, Node) else {}
                copy.meta = {**source, "val": buffer.meta["val"]}
                results[i] = copy
        output.args = (tuple(results),)
        return True


def insert_write_back_for_buffers_pass(
    ep: ExportedProgram,
) -> tuple[GraphModule, ExportGraphSignature]:
    """`InsertWriteBackForBuffers` on `ep` itself, whose graph and signature are returned."""
    InsertWriteBackForBuffers()(ep)
    return ep.graph_module, ep.graph_signature


def _is_written_in_place(value: object, buffer: Node) -> bool:
    if not isinstance(value, Node) or value.op != "call_function":
        return value is buffer
    op = overload_of(value.target)
    return op is not None and is_inplace(op) and written_arguments(value, op) == [buffer]


def _clone_overwritten(results: list[object], writes: dict[int, Node], written: set[Node]) -> None:
    """Replace results that are old values of written memory by clones, made before any write."""
    clones: dict[Node, Node] = {}
    for i, value in enumerate(results):
        if not isinstance(value, Node) or memory_of(value) not in written or writes.get(i) is value:
            continue
        if value not in clones:
            clones[value] = clone_of(value)
        results[i] = clones[value]
