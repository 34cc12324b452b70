"""Methods that take and give quantized tensors: their first quantization, and their last
dequantization, become the caller's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from executorch.exir.graph.operator_kind import overload_of
from executorch.exir.graph.pass_driver import Pass
from executorch.exir.graph.program_view import ProgramView
from executorch.exir.passes import quantized_ops_registry  # noqa: F401 (defines the operators)
from executorch.exir.tensor import scalar_type_enum
from executorch.exir.torch_internals import OpOverload

_QUANTIZE = "quantized_decomposed::quantize_per_tensor"
_DEQUANTIZE = "quantized_decomposed::dequantize_per_tensor"
_KEYS = ("scale", "zp", "quant_min", "quant_max", "dtype")
_REQUANTIZED = (torch.int8, torch.uint8, torch.bool, torch.int16, torch.uint16)

QuantArgs = tuple[float, int, int, int, torch.dtype]


def get_config_method_name(
    prefix: str | None = "forward", arg_type: str = "input", index: int = 0, key: str = "scale"
) -> str:
    """The constant method that tells a parameter, such as `forward_input0_scale`."""
    if arg_type not in ("input", "output"):
        raise AssertionError(f"arg_type must be either input or output, found {arg_type!r}")
    if index < 0:
        raise AssertionError(f"index must be non-negative, found {index}")
    if key not in _KEYS:
        raise AssertionError(f"key must be one of {', '.join(_KEYS)}, found {key!r}")
    return f"{prefix + '_' if prefix else ''}{arg_type}{index}_{key}"


def _is(node: object, name: str) -> bool:
    op = overload_of(node.target) if isinstance(node, Node) else None
    return op is not None and op.name() == name


def quantize_input(
    exported_program: ExportedProgram, input_index: int, qparams: Mapping[str, Any] | None = None
) -> QuantArgs:
    """Let input `input_index` be quantized; returns scale, zero point, least, largest and dtype.

    Requires  there is that input, and its only user quantizes it per tensor; ValueError otherwise.
    qparams   {"scale", "zp", "dtype"} where the caller has other ones: the input is dequantized,
              and quantized again as the graph has it
    """
    graph = exported_program.graph_module.graph
    inputs = exported_program.graph_signature.user_inputs
    if input_index not in range(len(inputs)):
        raise ValueError(f"input index {input_index!r} is out of bounds: {len(inputs)} inputs")
    name = inputs[input_index]
    (placeholder,) = (n for n in graph.find_nodes(op="placeholder") if n.name == name)
    if len(placeholder.users) != 1:
        raise ValueError(f"input {input_index} has {len(placeholder.users)} users, expected one")
    quantize = next(iter(placeholder.users))
    if not _is(quantize, _QUANTIZE):
        raise ValueError(f"input {input_index} is used by {quantize.target}, expected {_QUANTIZE}")
    own: Any = quantize.args[1:6]
    wanted = own if qparams is None else _asked(qparams, own)
    value = placeholder.meta["val"]
    if wanted == own:
        placeholder.meta["val"] = value.to(own[4])
        quantize.replace_all_uses_with(placeholder)
        graph.erase_node(quantize)
    else:
        dequantize_op = _counterpart(quantize.target)
        with graph.inserting_before(quantize):
            dequantize = graph.call_function(dequantize_op, (placeholder, *wanted))
        dequantize.meta = dict(quantize.meta) | {"val": value.to(torch.float32)}
        names = ("scale", "zero_point", "qmin", "qmax", "dtype")
        dequantize.meta["input_qparams"] = [dict(zip(names, wanted, strict=True))]
        placeholder.meta["val"] = value.to(wanted[4])
        quantize.replace_input_with(placeholder, dequantize)
    exported_program.graph_module.recompile()
    return wanted


def _counterpart(quantize: Any) -> Any:
    """The operator that dequantizes, of the same dialect."""
    if isinstance(quantize, OpOverload):
        return torch.ops.quantized_decomposed.dequantize_per_tensor.default
    from executorch.exir.dialects._ops import ops

    return ops.edge.quantized_decomposed.dequantize_per_tensor.default


def _asked(qparams: Mapping[str, Any], own: QuantArgs) -> QuantArgs:
    missing = [key for key in ("scale", "zp", "dtype") if key not in qparams]
    if missing:
        raise AssertionError(f"qparams for a requantized input need {', '.join(missing)} too")
    scale, zero_point, dtype = qparams["scale"], qparams["zp"], qparams["dtype"]
    same = math.isclose(scale, own[0], rel_tol=1e-5) and zero_point == own[1]
    if dtype == own[4] and same:
        return own
    if dtype != own[4] and not {dtype, own[4]} <= set(_REQUANTIZED):
        raise ValueError(f"requantization between {dtype} and {own[4]} is not supported")
    info = torch.iinfo(dtype)
    return scale, zero_point, info.min, info.max, dtype


def quantize_output(exported_program: ExportedProgram, output_index: int) -> QuantArgs:
    """Let output `output_index` be quantized: the dequantization it comes from goes. Returns its
    scale, zero point, least, largest and dtype. ValueError if it comes from something else."""
    graph = exported_program.graph_module.graph
    output = graph.output_node()
    results = list(output.args[0])  # type: ignore[arg-type]
    if output_index not in range(len(results)):
        raise ValueError(f"output index {output_index!r} is out of bounds: {len(results)} outputs")
    dequantize = results[output_index]
    if not _is(dequantize, _DEQUANTIZE):
        raise ValueError(f"output {output_index} is {dequantize}, no {_DEQUANTIZE}")
    source = dequantize.args[0]
    results[output_index] = source
    output.args = (type(output.args[0])(results),)  # type: ignore[call-arg]
    exported_program.graph_signature.output_specs[output_index].arg.name = source.name
    graph.eliminate_dead_code()
    exported_program.graph_module.recompile()
    return dequantize.args[1:6]


class _QuantizeValues(Pass):
    """Quantizes inputs or outputs of a manager's `forward`, or of `exported_program`, and tells the
    parameters by constant methods of the manager."""

    _kind = ""

    def __init__(
        self,
        edge_program_manager: Any,
        indices: Mapping[int, Any] | Sequence[int],
        method_name: str | None = None,
        exported_program: ExportedProgram | None = None,
    ) -> None:
        super().__init__()
        self.edge_program_manager = edge_program_manager
        self.param_prefix_name = method_name
        self.exported_program = exported_program
        self._wanted = dict(indices) if isinstance(indices, Mapping) else dict.fromkeys(indices)
        self._found: dict[int, QuantArgs] = {}

    def _quantize(self, program: ExportedProgram, index: int, qparams: Any) -> QuantArgs:
        raise NotImplementedError

    def edit(self, view: ProgramView) -> bool:
        manager = self.edge_program_manager
        program: Any = self.exported_program if manager is None else manager.exported_program()
        for index, qparams in self._wanted.items():
            self._found[index] = self._quantize(program, index, qparams)
            self._tell(index, self._found[index])
        return True

    def _tell(self, index: int, args: QuantArgs) -> None:
        manager = self.edge_program_manager
        if manager is None:
            return
        if manager._config_methods is None:
            manager._config_methods = {}
        told = (*args[:4], scalar_type_enum(args[4]))
        for key, value in zip(_KEYS, told, strict=True):
            name = get_config_method_name(self.param_prefix_name, self._kind, index, key)
            manager._config_methods[name] = value

    def _tell_all(self) -> None:
        for index, args in self._found.items():
            self._tell(index, args)

    edge_manager_update_quant_config_methods_all = _tell_all


class QuantizeInputs(_QuantizeValues):
    """Inputs become quantized tensors; of a dict, index -> parameters that the caller has.

    Before    x float; q = quantize_per_tensor(x, 0.1, 3, ...)
    After     q integer, an input; constant methods tell 0.1, 3 and the rest
    """

    _kind = "input"

    def __init__(
        self,
        edge_program_manager: Any,
        quantized_inputs_idx: Mapping[int, Any] | Sequence[int],
        method_name: str | None = None,
        exported_program: ExportedProgram | None = None,
    ) -> None:
        super().__init__(edge_program_manager, quantized_inputs_idx, method_name, exported_program)
        self.quantized_inputs_idx_dict, self.quant_args = self._wanted, self._found

    def _quantize(self, program: ExportedProgram, index: int, qparams: Any) -> QuantArgs:
        return quantize_input(program, index, qparams)

    def edge_manager_update_quant_config_method(self, idx: int, quant_args: QuantArgs) -> None:
        self._tell(idx, quant_args)


class QuantizeOutputs(_QuantizeValues):
    """Outputs become quantized tensors.

    Before    y = dequantize_per_tensor(q, 0.1, 3, ...), an output
    After     q, an output; constant methods tell 0.1, 3 and the rest
    """

    _kind = "output"

    def __init__(
        self,
        edge_program_manager: Any,
        quantized_outputs_idx_list: Sequence[int],
        method_name: str | None = None,
        exported_program: ExportedProgram | None = None,
    ) -> None:
        super().__init__(
            edge_program_manager, quantized_outputs_idx_list, method_name, exported_program
        )
        self.quantized_outputs_idx_list = list(quantized_outputs_idx_list)
        self.dequant_args = self._found

    def _quantize(self, program: ExportedProgram, index: int, qparams: Any) -> QuantArgs:
        return quantize_output(program, index)

    def edge_manager_update_quant_config_method(self, idx: int, dequant_args: QuantArgs) -> None:
        self._tell(idx, dequant_args)


def extract_io_quant_params(
    edge_prog: Any, *, input_idxs: Sequence[int] = (0,), output_idxs: Sequence[int] = (0,)
) -> dict[str, dict[str, dict[str, Any]]]:
    """{"inputs": {placeholder: {"scale", "zero_point", ...}}, "outputs": {node: ...}} of a manager,
    whose quantization at both ends is taken off on the way: give a copy.deepcopy to keep it."""
    passes: list[Pass] = [QuantizeInputs(edge_prog, [i]) for i in input_idxs]
    passes += [QuantizeOutputs(edge_prog, [i]) for i in output_idxs]
    edge_prog = edge_prog.transform(passes)
    graph = edge_prog.exported_program().graph_module.graph
    names = {
        "input": [n.name for n in graph.find_nodes(op="placeholder")],
        "output": [getattr(n, "name", None) for n in graph.output_node().args[0]],
    }
    found: dict[str, dict[str, dict[str, Any]]] = {"inputs": {}, "outputs": {}}
    for method, value in (edge_prog._config_methods or {}).items():
        for kind, indices in (("input", input_idxs), ("output", output_idxs)):
            for index in indices:
                for key in _KEYS:
                    if method == get_config_method_name(None, kind, index, key):
                        parameters = found[f"{kind}s"].setdefault(names[kind][index], {})
                        parameters["zero_point" if key == "zp" else key] = value
    return found
