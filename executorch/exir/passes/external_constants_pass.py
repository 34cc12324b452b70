"""Which constants live in .ptd files beside the program."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.pass_base import PassResult

from executorch.exir.graph.pass_driver import Pass
from executorch.exir.graph.program_view import ProgramView

# Metadata key of a placeholder: the name of the file, without ".ptd".
CONSTANT_TAG = "constant_tag"
DEFAULT_FILE = "_default_external_constant"

TagFunction = Callable[[Node], str | None]


def is_param_node(exp_prog: ExportedProgram, node: Node) -> bool:
    """Whether the node is a parameter, a buffer or a lifted constant."""
    kinds = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
    return any(
        s.kind in kinds and getattr(s.arg, "name", None) == node.name
        for s in exp_prog.graph_signature.input_specs
    )


class TagExternalConstants(Pass):
    """Tag constants with the file that `choose` names; None keeps them in the program. Without a
    function, all that are not scalars lifted from the code go to the default file."""

    def __init__(self, choose: TagFunction | None = None) -> None:
        self.choose = choose or _default_tag

    def edit(self, view: ProgramView) -> bool:
        constants = [
            node
            for node in view.graph.find_nodes(op="placeholder")
            if getattr(node.meta.get("spec"), "const", False)
        ]
        return _tag(constants, self.choose)


def _tag(nodes: Iterable[Node], choose: TagFunction) -> bool:
    modified = False
    for node in nodes:
        tag = choose(node)
        if tag is not None:
            node.meta[CONSTANT_TAG] = _checked(tag, node)
            modified = True
    return modified


def _checked(tag: str, node: Node) -> str:
    """`tag`; TypeError or ValueError unless it names a file without folders: all files are written
    to one folder."""
    if not isinstance(tag, str):
        raise TypeError(f"external constants: {node}: expected the name of a file, found {tag!r}")
    if not tag or "/" in tag or "\\" in tag or tag.startswith("."):
        raise ValueError(
            f"external constants: {node}: expected a file's name without folders, found {tag!r}"
        )
    return tag


def external_constants_pass(gm: GraphModule, gen_tag_fn: TagFunction | None = None) -> PassResult:
    """`TagExternalConstants` on one graph module."""
    return TagExternalConstants(gen_tag_fn)(gm)  # type: ignore[no-any-return]


def _default_tag(node: Node) -> str | None:
    return None if "_lifted_tensor" in node.name else DEFAULT_FILE


class TagTrainedWeights(Pass):
    """Tag the parameters that a training program has gradients of."""

    def edit(self, view: ProgramView) -> bool:
        kind = OutputKind.GRADIENT_TO_PARAMETER
        trained = {s.target for s, _ in view.outputs if s.kind is kind}
        weights = [
            node
            for node, spec in view.inputs.items()
            if spec.kind is InputKind.PARAMETER and spec.target in trained
        ]
        return _tag(weights, lambda _: DEFAULT_FILE)


def external_mutable_weights_pass(gm: GraphModule, ep: ExportedProgram) -> PassResult:
    """`TagTrainedWeights` on a program and its graph module."""
    return PassResult(gm, TagTrainedWeights()(ep).modified)


def delegate_external_constants_pass_unlifted(
    module: torch.nn.Module, gen_tag_fn: TagFunction | None = None
) -> PassResult:
    """Tag the parameters and buffers that a graph still reads by get_attr, before lowering: the
    backend that takes them over stores them in the file `gen_tag_fn` names."""
    if not isinstance(module, GraphModule):
        raise ValueError(f"expected a GraphModule, found {type(module).__name__}")
    choose = gen_tag_fn or _default_tag
    modified = False
    for node in module.graph.find_nodes(op="get_attr"):
        tag = choose(node)
        if tag is not None:
            custom = node.meta.setdefault("custom", {})
            custom["delegate_constant_tag"] = _checked(tag, node)
            modified = True
    return PassResult(module, modified)
