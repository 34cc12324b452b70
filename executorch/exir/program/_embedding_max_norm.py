"""`torch.nn.Embedding(max_norm=...)` writes its weights before it reads them; here only the rows
that are read are scaled, so that weights stay constants."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node

from executorch.exir.error import ExportError, ExportErrorType
from executorch.exir.graph.graph_edit import compute_value
from executorch.exir.graph.source_line import source_line
from executorch.exir.torch_internals import set_parts

aten = torch.ops.aten


def scale_rows_read(program: ExportedProgram) -> ExportedProgram:
    """`program` with rows of embeddings scaled to at most `max_norm` as they are read, as a new
    program; `program` itself if no embedding has a `max_norm`.

    Eager scales the rows in the weights, for good. Results are the same, as a row that was scaled
    is not scaled again, unless something else reads the weights: ExportError (NOT_SUPPORTED).
    """
    if not program.graph.find_nodes(op="call_function", target=aten.embedding_renorm_.default):
        return program
    graph = copy.deepcopy(program.graph)
    for mine, theirs in zip(graph.nodes, program.graph.nodes, strict=True):
        mine.name = theirs.name  # as the signature says; fx has others for `input` and the like
    for call in graph.find_nodes(op="call_function", target=aten.embedding_renorm_.default):
        _move_to_reads(graph, call)
    new = copy.copy(program)
    set_parts(new, graph_module=GraphModule(program.graph_module, graph))
    new.graph_module.meta.update(program.graph_module.meta)
    return new


def _move_to_reads(graph: Graph, renorm: Node) -> None:
    written, indices, max_norm, p = renorm.args
    weights = _undetached(written)
    for reader in [r for r in weights.users if r.target is not aten.detach.default]:
        if reader.target is not aten.embedding.default or not _is_renormed(reader, weights):
            raise ExportError(
                ExportErrorType.NOT_SUPPORTED,
                f"an embedding with max_norm={max_norm} changes its weights {weights.name}, which "
                f"{reader.name} ({reader.target}) reads, too; scale the weights before the export, "
                f"and leave out max_norm{source_line(renorm)}",
            )
        if reader.args[1] is indices and renorm < reader and "scaled" not in reader.meta:
            _scale(graph, reader, max_norm, p)
            reader.meta["scaled"] = True
    assert isinstance(written, Node)
    graph.erase_node(renorm)
    while written is not weights and not written.users:
        above = written.args[0]
        graph.erase_node(written)
        written = above
        assert isinstance(written, Node)


def _undetached(node: Any) -> Node:
    while node.target is aten.detach.default:
        node = node.args[0]
    assert isinstance(node, Node)
    return node


def _is_renormed(read: Node, weights: Node) -> bool:
    """Whether all rows of this read are scaled before, or have been made to be."""
    if "scaled" in read.meta:
        return True
    return any(
        _undetached(call.args[0]) is weights and call.args[1] is read.args[1] and call < read
        for call in read.graph.find_nodes(op="call_function", target=aten.embedding_renorm_.default)
    )


def _scale(graph: Graph, rows: Node, max_norm: Any, p: Any) -> None:
    readers = list(rows.users)
    after = rows

    def call(target: Any, *args: Any) -> Node:
        nonlocal after
        with graph.inserting_after(after):
            after = graph.call_function(target, args)
        after.meta = {**rows.meta, "val": compute_value(target, args)}
        return after

    norm = call(aten.linalg_vector_norm.default, rows, p, [-1], True)
    beyond = call(aten.gt.Scalar, norm, max_norm)
    inverse = call(aten.reciprocal.default, call(aten.add.Scalar, norm, 1e-7))
    ratio = call(aten.mul.Scalar, inverse, max_norm)
    factor = call(aten.where.ScalarOther, beyond, ratio, 1.0)
    scaled = call(aten.mul.Tensor, rows, factor)
    for reader in readers:
        reader.replace_input_with(rows, scaled)
