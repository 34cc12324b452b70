import torch
from torch.fx import GraphModule

from executorch.exir.graph.graph_edit import GraphEdit
from executorch.exir.torch_internals import OpOverloadPacket

_aten = torch.ops.aten
_OVERLOADS = {
    _aten.sym_size: _aten.sym_size.int,
    _aten.sym_stride: _aten.sym_stride.int,
    _aten.sym_numel: _aten.sym_numel.default,
    _aten.sym_storage_offset: _aten.sym_storage_offset.default,
}


class ReplaceSymSizeOpPass(GraphEdit):
    """Turn the packets of symbolic sizes, strides and offsets into their overloads."""

    def edit(self, graph_module: GraphModule) -> bool:
        modified = False
        for node in graph_module.graph.nodes:
            if isinstance(node.target, OpOverloadPacket) and node.target in _OVERLOADS:
                node.target = _OVERLOADS[node.target]
                modified = True
        return modified
