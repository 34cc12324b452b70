"""A backend that hands parts of what it was given to another."""

import torch

from executorch.exir import to_edge
from executorch.exir.backend.backend_api import to_backend
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.utils import get_delegation_info
from executorch.exir.dialects._ops import ops
from executorch.exir.graph_module import get_control_flow_submodules


class _Tagging(Partitioner):
    """Tags calls of `targets`, in sub-graphs as well."""

    def __init__(self, backend, tag, targets):
        super().__init__()
        self.spec_of_all, self.tag, self.targets = DelegationSpec(backend, []), tag, targets

    def tag_graph(self, graph_module):
        for node in graph_module.graph.nodes:
            if node.op == "call_function" and node.target in self.targets:
                node.meta["delegation_tag"] = self.tag
        for _, sub_graph, call in get_control_flow_submodules(graph_module):
            for argument in call.args[1:3]:
                argument.meta["delegation_tag"] = self.tag
            self.tag_graph(sub_graph)

    def partition(self, program):
        self.tag_graph(program.graph_module)
        return PartitionResult(program, {self.tag: self.spec_of_all})


class Inner(BackendDetails):
    @staticmethod
    def preprocess(edge_program, compile_specs):
        return PreprocessResult(b"inner")


class Outer(BackendDetails):
    @staticmethod
    def preprocess(edge_program, compile_specs):
        tagging = _Tagging("Inner", "inner", {ops.edge.aten.add.Tensor})
        inner = to_backend(edge_program, tagging)
        info = get_delegation_info(inner.graph_module)
        return PreprocessResult(f"{info.num_delegated_subgraphs} inner".encode())


class Nested(torch.nn.Module):
    def forward(self, x):
        def positive(x):
            return torch.cond(x.max() > 1, lambda x: x + x, lambda x: x.sin(), (x,)) + x

        return torch.cond(x.sum() > 0, positive, lambda x: x.cos(), (x,))


def test_tags_of_the_outer_partitioner_mean_nothing_to_the_inner_one():
    cond = torch.ops.higher_order.cond
    program = torch.export.export(Nested(), (torch.ones(2, 2),), strict=True)
    lowered = to_edge(program).to_backend(_Tagging("Outer", "outer", {cond}))
    (delegate,) = [
        m.processed_bytes
        for m in lowered.exported_program().graph_module.children()
        if hasattr(m, "processed_bytes")
    ]
    assert delegate == b"2 inner"
