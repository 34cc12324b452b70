"""What torchao's `quantize_` leaves in an exported program, in operators that the runtime has."""

from __future__ import annotations

import copy
import operator
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputSpec, TensorArgument
from torch.fx import Graph, GraphModule, Node

from executorch.exir.graph.graph_edit import insert_before, replace_node
from executorch.exir.graph.operator_kind import overload_of
from executorch.exir.graph.pass_driver import GraphPass, Pass, run_passes
from executorch.exir.graph.program_view import Dialect, ProgramView, renamed_signature
from executorch.exir.torch_internals import is_traceable_wrapper_subclass, schema_of, set_parts

aten = torch.ops.aten


def lower_torchao_quantization(program: ExportedProgram) -> ExportedProgram:
    """The program with plain tensors for weights and `quantized_decomposed` operators; a new one,
    or `program` itself where torchao had no part in it.

    Requires  a program as torch.export gives it, before decomposition.
    Ensures   equal values within float rounding: the zero point of a token may differ by one
              where it lies half-way.
    Leaves    other uses of subclasses than their parts, and other block shapes than tokens and
              groups of a row: torch decomposes these to plain arithmetic.
    """
    if not any(_is_torchaos(node) for node in program.graph.nodes):
        return program
    new = copy.copy(program)
    set_parts(new, graph_module=copy.deepcopy(program.graph_module))
    # The copied graph spells some names in its own way.
    set_parts(new, graph_signature=renamed_signature(program.graph_signature, new.graph_module))
    run_passes([ProgramView(new, Dialect.ATEN)], [UnwrapSubclasses(), LowerAffineQuantization()])
    return new


def quantized_operators() -> Any:
    """`torch.ops.quantized_decomposed`, registered; imported late, as it takes its time."""
    from executorch.exir.passes import quantized_ops_registry  # noqa: F401

    return torch.ops.quantized_decomposed


def _is_torchaos(node: Node) -> bool:
    return _is_access(node) or _name(node).startswith("torchao::")


def _name(node: Node) -> str:
    op = overload_of(node.target) if node.op == "call_function" else None
    return op.name() if op is not None else ""


def _is_access(node: Node) -> bool:
    return _name(node).startswith("export::access_subclass_inner_tensor")


class UnwrapSubclasses(Pass):
    """Make the parts of each tensor subclass parameters of their own: "w" gives "w.qdata" ..."""

    def edit(self, view: ProgramView) -> bool:
        specs: dict[str, InputSpec] = {}
        data: dict[str, Tensor] = {}
        for node, spec in view.inputs.items():
            tensor = view.program.state_dict.get(spec.target or "")  # type: ignore[union-attr]
            if tensor is None or not _has_parts_only(node, tensor):
                continue
            for place, part in _split(node, str(spec.target)):
                data[part] = torch.nn.Parameter(_part(tensor, spec, part), False)
                argument = TensorArgument(name=place.name)
                specs[place.name] = InputSpec(spec.kind, argument, part, spec.persistent)
            view.graph.erase_node(node)
        if specs:
            view.update_inputs(specs, data)
        return bool(specs)


def _has_parts_only(node: Node, tensor: Tensor) -> bool:
    if not is_traceable_wrapper_subclass(tensor):
        return False
    users = list(node.users)
    while users:
        user = users.pop()
        if not _is_access(user):
            return False
        if is_traceable_wrapper_subclass(user.meta["val"]):
            users += list(user.users)
    return True


def _split(node: Node, name: str) -> list[tuple[Node, str]]:
    """Replace the reads of plain parts by placeholders before `node`; each with its name."""
    made: dict[str, Node] = {}

    def visit(source: Node, path: str) -> None:
        for read in list(source.users):
            part = f"{path}.{read.args[1]}"
            if is_traceable_wrapper_subclass(read.meta["val"]):
                visit(read, part)
                node.graph.erase_node(read)
                continue
            if part not in made:
                made[part] = _add_placeholder(node, part.removeprefix(name), read.meta["val"])
            replace_node(read, made[part])

    visit(node, name)
    return [(place, part) for part, place in made.items()]


def _add_placeholder(before: Node, suffix: str, value: Tensor) -> Node:
    graph: Graph = before.graph
    with graph.inserting_before(before):
        place = graph.placeholder(before.name + suffix.replace(".", "_"))
    place.meta = {**before.meta, "val": value}
    return place


def _part(tensor: Tensor, spec: InputSpec, part: str) -> Tensor:
    value: Any = tensor
    for attribute in part.removeprefix(f"{spec.target}.").split("."):
        value = getattr(value, attribute)
    return value.detach()


class LowerAffineQuantization(GraphPass):
    """Name torchao's affine quantization by the granularity that it has.

    Before    s, z = choose_qparams_affine(x, "ASYMMETRIC", [1, .., k], ...)
              y = dequantize_affine(quantize_affine(x, [1, .., k], s, z), [1, .., k], s, z)
              w = dequantize_affine(q, [1, group], scales, zeros)
              y = mm(x, to(t(q), x.dtype)) * flatten(scales)
              y = _int_mm(quantize_affine(x, [1, .., k], s, z), t(q)) * s * flatten(scales)
    After     choose_qparams_per_token_asymmetric, (de)quantize_per_token,
              dequantize_per_channel_group, for the last two with one group a row, and
              y = linear(x, dequantize_per_channel_group(q))
              y = mm(dequantize_affine(...), t(dequantize_per_channel_group(q)))
    Requires  the ATen dialect, before decomposition.
    Leaves    symmetric activations of other products, and other blocks.
    """

    def edit_graph(self, graph_module: GraphModule) -> bool:
        modified = False
        for node in list(graph_module.graph.nodes):
            if _name(node) == "torchao::choose_qparams_affine":
                modified |= _lower_tokens(node)
        for node in list(graph_module.graph.nodes):
            if _name(node) == "torchao::dequantize_affine":
                modified |= _lower_groups(node)
            elif node.target is aten.mm.default:
                modified |= _lower_scaled_product(node)
            elif node.target is aten._int_mm.default:
                modified |= _lower_integer_product(node)
        return modified


def _arguments(node: Node) -> dict[str, Any]:
    """The arguments of a call by name, with the defaults."""
    schema = schema_of(node.target).arguments
    found = {a.name: a.default_value for a in schema}
    found.update(zip(found, node.args, strict=False))
    return {**found, **node.kwargs}


def _is_token(block: list[int], value: Tensor) -> bool:
    return all(extent == 1 for extent in block[:-1]) and block[-1] == value.shape[-1]


def _lower_tokens(choose: Node) -> bool:
    given = _arguments(choose)
    x, low, high = given["input"], given["quant_min"], given["quant_max"]
    asymmetric = given["mapping_type"] == "ASYMMETRIC" and (low, high) == (-128, 127)
    if not asymmetric or given["target_dtype"] is not torch.int8:
        return False
    if not _is_token(given["block_size"], x.meta["val"]):
        return False
    parameters = {n.args[1]: n for n in choose.users if n.target is operator.getitem}
    if set(parameters) != {0, 1}:
        return False
    encoded = [n for n in parameters[0].users if _name(n) == "torchao::quantize_affine"]
    restored = [n for n in parameters[0].users if _name(n) == "torchao::dequantize_affine"]
    others = {*parameters[0].users, *parameters[1].users} - {*encoded, *restored}
    if others or any(_arguments(n)["input"] is not x for n in encoded):
        return False
    if any(_arguments(n)["input"] not in encoded for n in restored):
        return False
    quantized = quantized_operators()
    choose_tokens = quantized.choose_qparams_per_token_asymmetric.default
    chosen = insert_before(choose, choose_tokens, (x, torch.int8))
    scale, zero = (
        insert_before(choose, operator.getitem, (chosen, i), value=chosen.meta["val"][i])
        for i in (0, 1)
    )
    integers = (scale, zero, low, high, torch.int8)
    for node in encoded:
        new = insert_before(node, quantized.quantize_per_token.default, (x, *integers))
        replace_node(node, new)
    for node in restored:
        dtype = _arguments(node)["output_dtype"]
        args = (node.args[0], *integers, dtype)
        replace_node(node, insert_before(node, quantized.dequantize_per_token.default, args))
    for node in (*parameters.values(), choose):
        node.graph.erase_node(node)
    return True


def _lower_groups(node: Node) -> bool:
    given = _arguments(node)
    q, block, scale, zero = (given[k] for k in ("input", "block_size", "scale", "zero_point"))
    shape = q.meta["val"].shape
    if len(shape) != 2 or block[0] != 1 or shape[1] % block[1] or given["quant_min"] is None:
        return False
    if tuple(scale.meta["val"].shape) != (shape[0], shape[1] // block[1]):
        return False
    args = (
        *(q, scale, zero, given["quant_min"], given["quant_max"]),
        *(given["input_dtype"], block[1], given["output_dtype"]),
    )
    target = quantized_operators().dequantize_per_channel_group.default
    replace_node(node, insert_before(node, target, args, value=node.meta["val"]))
    return True


# What lies between a weight's part and where it is used, changing no value.
_PASSED = (aten.to.dtype, aten.flatten.using_ints, aten.reshape.default)

# The dtypes of products by weights that stay integers.
_COMPUTED = (torch.float32, torch.float16, torch.bfloat16)


def _lower_scaled_product(mm: Node) -> bool:
    """Scale the weight before the product, as every quantized weight is."""
    x, cast = mm.args
    scaled = next(iter(mm.users))
    if len(mm.users) != 1 or scaled.target is not aten.mul.Tensor or scaled.args[0] is not mm:
        return False
    if not isinstance(cast, Node) or cast.target is not aten.to.dtype:
        return False
    transposed, scales = cast.args[0], scaled.args[1]
    if not isinstance(transposed, Node) or transposed.target is not aten.t.default:
        return False
    while isinstance(scales, Node) and scales.target in _PASSED:
        scales = scales.args[0]
    q: Any = transposed.args[0]
    n, k = q.meta["val"].shape
    if q.meta["val"].dtype != torch.int8 or not isinstance(scales, Node):
        return False
    dtype = mm.meta["val"].dtype
    if tuple(scales.meta["val"].shape) != (n, 1) or dtype not in _COMPUTED:
        return False
    args = (q, scales, None, -128, 127, torch.int8, k, dtype)
    weight = insert_before(scaled, quantized_operators().dequantize_per_channel_group.default, args)
    product = insert_before(scaled, aten.linear.default, (x, weight), value=scaled.meta["val"])
    replace_node(scaled, product)
    mm.graph.erase_node(mm)
    return True


def _lower_integer_product(product: Node) -> bool:
    """Multiply what the integers stand for: a backend sees an ordinary quantized layer, and where
    there is none, kernels compute in float."""
    rows, transposed = product.args
    assert isinstance(rows, Node) and isinstance(transposed, Node)
    quantize = _behind(rows, (aten.reshape.default, aten.view.default, aten.to.dtype, _ADD))
    if _name(quantize) != "torchao::quantize_affine" or transposed.target is not aten.t.default:
        return False
    given, q = _arguments(quantize), transposed.args[0]
    n, k = q.meta["val"].shape  # type: ignore[union-attr]
    scaled = _ahead(_ahead(product, given["scale"]), None)
    if scaled is None:
        return False
    scales = _behind(scaled.args[1], _PASSED)
    if tuple(scales.meta["val"].shape) not in ((n,), (n, 1)):
        return False
    operand = {key: given[key] for key in ("block_size", "scale", "zero_point")}
    activations = insert_before(
        scaled,
        torch.ops.torchao.dequantize_affine.default,
        (quantize, *operand.values(), torch.int8, -128, 127),
    )
    if len(activations.meta["val"].shape) != 2:
        shape = (activations, [-1, k])
        activations = insert_before(scaled, aten.reshape.default, shape)
    if len(scales.meta["val"].shape) == 1:
        scales = insert_before(scaled, aten.reshape.default, (scales, [n, 1]))
    args = (q, scales, None, -128, 127, torch.int8, k, torch.float32)
    weight = insert_before(scaled, quantized_operators().dequantize_per_channel_group.default, args)
    transposed = insert_before(scaled, aten.t.default, (weight,))
    value = scaled.meta["val"]
    replace_node(
        scaled, insert_before(scaled, aten.mm.default, (activations, transposed), value=value)
    )
    _erase_with_readers(product)
    return True


def _erase_with_readers(node: Node) -> None:
    for user in list(node.users):
        _erase_with_readers(user)
    node.graph.erase_node(node)


_ADD = aten.add.Tensor


def _behind(node: Any, passed: tuple[Any, ...]) -> Node:
    """The first operand, through calls that only move or widen it."""
    while isinstance(node, Node) and node.target in passed:
        node = node.args[0]
    return node  # type: ignore[no-any-return]


def _ahead(node: Node | None, scale: Node | None) -> Node | None:
    """The multiplication by `scale` (None: by any scale) that alone reads the result, through casts
    and subtractions that make integers signed again; None if there is none."""
    while node is not None:
        users = [u for u in node.users if u.target is not aten._assert_tensor_metadata.default]
        if len(users) != 1 or users[0].args[0] is not node:
            return None
        node = users[0]
        if node.target is aten.mul.Tensor:
            factor = _behind(node.args[1], _PASSED)
            return node if scale is None or factor is scale else None
        if node.target not in (aten.to.dtype, aten.sub_.Tensor, aten.sub.Tensor):
            return None
    return None
