"""Programs made by hand that call kernels one after the other, with nothing in between: what the
exporter would fold, decompose or refuse reaches the kernel as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from executorch.exir import schema
from executorch.exir._serialize._program import PTEFile, serialize_pte_binary
from executorch.exir.tensor import dim_order_of, memory_format_enum, scalar_type_enum
from executorch.runtime import Runtime

ALIGNMENT = 16


@dataclass
class Call:
    """`name` (as registered) on `args`, where a tuple is a list of optional tensors.

    `results` have the dtypes, extents and layouts of its outputs, the arguments that it changes
    first; `written` are the places of those. `list_out`: it has one output, a list.
    """

    name: str
    args: Sequence[Any]
    results: Sequence[torch.Tensor]
    written: tuple[int, ...] = ()
    list_out: bool = False


def storage(t: torch.Tensor) -> bytes:
    """The elements in the order they have in memory."""
    dense = t.detach().permute(dim_order_of(t)).contiguous().reshape(-1)
    return dense.view(torch.uint8).numpy().tobytes() if t.numel() else b""


class Builder:
    """`plans_arguments`: tensors among arguments lie in planned memory; else they are constants."""

    def __init__(self, plans_arguments: bool = False) -> None:
        self.plans_arguments = plans_arguments
        self.values: list[schema.EValue] = []
        self.buffers = [schema.Buffer(b"")]
        self.initial = [schema.Buffer(b"")]
        self.operators: list[schema.Operator] = []
        self.instructions: list[schema.Instruction] = []
        self.outputs: list[int] = []
        self.planned = 0

    def value(self, val: Any) -> int:
        self.values.append(schema.EValue(val))
        return len(self.values) - 1

    def tensor(self, t: torch.Tensor, *, buffer: int, planned: bool, slack: int = 0) -> int:
        """`slack` rows more than `t` has are planned, which the kernel must take away again."""
        sizes = list(t.shape)
        if slack and sizes:
            sizes[0] += slack
        allocation = None
        if planned:
            allocation = schema.AllocationDetails(1, self.planned, 0)
            n_bytes = t.element_size() * torch.Size(sizes).numel()
            self.planned += -(-n_bytes // ALIGNMENT) * ALIGNMENT
        dynamism = schema.TensorShapeDynamism
        return self.value(
            schema.Tensor(
                scalar_type=scalar_type_enum(t.dtype),
                storage_offset=0,
                sizes=sizes,
                dim_order=list(dim_order_of(t)),
                requires_grad=False,
                layout=0,
                data_buffer_idx=buffer,
                allocation_info=allocation,
                shape_dynamism=dynamism.DYNAMIC_BOUND if slack and sizes else dynamism.STATIC,
            )
        )

    def argument(self, arg: Any) -> int:
        if isinstance(arg, torch.Tensor):
            if self.plans_arguments:
                return self.variable(arg)
            self.buffers.append(schema.Buffer(storage(arg)))
            return self.tensor(arg, buffer=len(self.buffers) - 1, planned=False)
        if isinstance(arg, tuple):
            items = [-1 if item is None else self.argument(item) for item in arg]
            return self.value(schema.OptionalTensorList(items))
        if isinstance(arg, list):
            return self.value(self.list_value(arg))
        if isinstance(arg, torch.dtype):
            return self.value(schema.Int(int(scalar_type_enum(arg))))
        if isinstance(arg, torch.memory_format):
            return self.value(schema.Int(memory_format_enum(arg)))
        if arg is None:
            return self.value(schema.Null())
        for kind, made in [
            (bool, schema.Bool),
            (int, schema.Int),
            (float, schema.Double),
            (str, schema.String),
        ]:
            if isinstance(arg, kind):
                return self.value(made(arg))
        raise TypeError(f"{arg!r} is no argument of an operator")

    def variable(self, t: torch.Tensor) -> int:
        """A tensor in planned memory with the values of `t`."""
        self.initial.append(schema.Buffer(storage(t)))
        return self.tensor(t, buffer=len(self.initial) - 1, planned=True)

    def list_value(self, items: list[Any]) -> Any:
        if any(isinstance(item, torch.Tensor) for item in items):
            return schema.TensorList([self.argument(item) for item in items])
        if any(isinstance(item, float) for item in items):
            return schema.DoubleList(items)
        if any(isinstance(item, bool) for item in items):
            return schema.BoolList(items)
        return schema.IntList([self.argument(item) for item in items])

    def call(self, call: Call) -> None:
        name, _, overload = call.name.partition(".")
        args = [
            self.variable(arg) if i in call.written else self.argument(arg)
            for i, arg in enumerate(call.args)
        ]
        changed = [args[i] for i in call.written]
        results = call.results[len(changed) :]
        slack = 0 if call.list_out else 1
        outs = [self.tensor(t, buffer=0, planned=True, slack=slack) for t in results]
        if call.list_out:
            args += [self.value(schema.TensorList(outs))] * 2
        elif outs:
            args += outs + outs[:1] * (len(outs) == 1)
        else:
            args += changed
        self.operators.append(schema.Operator(name, overload))
        kernel = schema.KernelCall(len(self.operators) - 1, args)
        self.instructions.append(schema.Instruction(kernel))
        self.outputs += changed + outs

    def program(self) -> bytes:
        plan = schema.ExecutionPlan(
            name="forward",
            container_meta_type=schema.ContainerMetadata("", ""),
            values=self.values,
            inputs=[],
            outputs=self.outputs,
            chains=[schema.Chain([], [], self.instructions, None)],
            operators=self.operators,
            delegates=[],
            non_const_buffer_sizes=[0, self.planned],
        )
        program = schema.Program(
            version=0,
            execution_plan=[plan],
            constant_buffer=self.buffers,
            backend_delegate_data=[],
            segments=[],
            constant_segment=schema.SubsegmentOffsets(0, []),
        )
        initial = self.initial if len(self.initial) > 1 else None
        return bytes(serialize_pte_binary(PTEFile(program, mutable_data=initial)))


def run(calls: Sequence[Call]) -> list[list[torch.Tensor]]:
    """The results of each call, computed by the runtime."""
    builder = Builder()
    for call in calls:
        builder.call(call)
    method = Runtime.get().load_program(builder.program()).load_method("forward")
    assert method is not None
    found = iter(method.execute([]))
    return [[next(found) for _ in c.results] for c in calls]
