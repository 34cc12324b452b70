"""Runs a method instruction by instruction in the C++ runtime and asks eager PyTorch about each.

Every operator is given to PyTorch with the arguments the runtime had for it, so an error is found
where it is made, not where it shows. What load-time fusion leaves out is computed by PyTorch alone:
the fused call then answers for all the operators it stands for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from executorch.devtools.parity.bounds import bound, map_floats
from executorch.devtools.parity.compare import Difference, compare
from executorch.devtools.parity.delegates import Delegates
from executorch.exir import schema
from executorch.exir._serialize._program import PTEFile, deserialize_pte_binary
from executorch.exir.error import first_line
from executorch.exir.scalar_type import ScalarType
from executorch.exir.side_effects import copied
from executorch.exir.tensor import get_scalar_type
from executorch.exir.torch_internals import schema_of

# Operators whose results do not depend on their arguments alone.
_UNCHECKED = {
    "aten::empty",
    "aten::empty_like",
    "aten::rand",
    "aten::randn",
    "aten::native_dropout",
}
# These change the dim order, and their Python kernels do not resize `out`.
_COPIES = {"dim_order_ops::_clone_dim_order", "dim_order_ops::_to_dim_order_copy"}
_LISTS = (schema.TensorList, schema.OptionalTensorList)
_FORMATS = [torch.contiguous_format, torch.preserve_format, torch.channels_last]


@dataclass(frozen=True)
class Suspect:
    """An operator whose result is not what PyTorch computes from the same arguments."""

    chain: int
    instruction: int
    operator: str
    output: int
    message: str
    difference: Difference | None = None
    fused: bool = False  # the call stands for several operators, of which this is the last
    inside: str = ""  # the operation, as the delegate that is called there reports it
    place: str = ""  # module path and Python line, where the program or the model tells

    def __str__(self) -> str:
        fused = ", fused with operators before it," if self.fused else ""
        where = f" in {self.place}" if self.place else ""
        return (
            f"{self.operator}{fused} (instruction {self.chain}:{self.instruction}){where}: "
            f"{self.message}"
        )


@dataclass
class Replay:
    """Checks a method's operators. `checked` counts them by name; `unchecked` has the reasons for
    those that were not checked."""

    plan: schema.ExecutionPlan
    file: PTEFile
    data: bytes
    checked: dict[str, int] = field(default_factory=dict)
    unchecked: dict[str, str] = field(default_factory=dict)
    results: dict[tuple[int, int], Tensor] = field(default_factory=dict)
    keep_results: bool = False
    # (memory id, offset) -> the value, computed here, that fusion kept the runtime from storing.
    _left_out: dict[Any, Any] = field(default_factory=dict)

    @staticmethod
    def of(program: bytes, method: str, keep_results: bool = False) -> Replay:
        file = deserialize_pte_binary(program)
        for plan in file.program.execution_plan:
            if plan.name == method:
                return Replay(plan, file, program, keep_results=keep_results)
        raise ValueError(f"the program has no method {method!r}")

    def suspects(self, runner: Any, inputs: Sequence[Any]) -> Iterator[Suspect]:
        """Steps `runner`, a method of the bindings, through `inputs`; what is wrong, in order.

        Read it to the end, or leave `runner` behind: it stops where the reader does.
        """
        delegates = Delegates(self.data, self.file, self.plan.name, copied(inputs))
        runner.set_inputs(inputs)
        known: dict[int, Any] = {}  # values computed so far, as the runtime has them
        self._left_out.clear()

        def value(index: int) -> Any:
            listed = self.plan.values[index].val
            if isinstance(listed, _LISTS):
                return [value(i) if i >= 0 else None for i in listed.items]
            if index in known:
                return known[index]
            seen = self._seen_left_out(index)
            return runner._value(index) if seen is None else seen

        skipped = False
        while (step := runner._step()) is not None:
            chain, number, ran = step
            if number >= len(self.plan.chains[chain].instructions):
                continue
            call = self.plan.chains[chain].instructions[number].instr_args
            if isinstance(call, schema.KernelCall):
                yield from self._kernel(call, (chain, number), ran, skipped, value, known, runner)
                skipped = skipped if ran and self._name(call)[0].startswith("exec") else not ran
            elif isinstance(call, schema.MoveCall):
                known[call.move_to] = runner._value(call.move_to)
            elif isinstance(call, schema.DelegateCall):
                for index in call.args:
                    if index not in known and isinstance(
                        self.plan.values[index].val, schema.Tensor
                    ):
                        known[index] = runner._value(index)
                    self._left_out.pop(self._place(index), None)
                yield from self._delegate(call, (chain, number), delegates)
            else:
                continue
            self._forget(call, number, known)

    def _delegate(
        self, call: schema.DelegateCall, place: tuple[int, int], delegates: Delegates
    ) -> Iterator[Suspect]:
        delegate = self.plan.delegates[call.delegate_index]
        for wrong in delegates.wrong(delegate, place[1]):
            name = f"{delegate.id} {wrong.operation}"
            yield Suspect(
                *place, name, wrong.output, wrong.message, wrong.difference, inside=wrong.operation
            )
        self.checked.update(delegates.checked)
        self.unchecked.update(delegates.unchecked)

    def _name(self, call: schema.KernelCall) -> tuple[str, str]:
        operator = self.plan.operators[call.op_index]
        return operator.name, operator.overload

    def _kernel(
        self,
        call: schema.KernelCall,
        place: tuple[int, int],
        ran: bool,
        fused: bool,
        value: Callable[[int], Any],
        known: dict[int, Any],
        runner: Any,
    ) -> Iterator[Suspect]:
        name, overload = self._name(call)
        full = f"{name}.{overload}" if overload else name
        if name == "executorch_prim::et_view":
            source = value(call.args[0])
            if ran or not isinstance(source, Tensor):
                known[call.args[2]] = runner._value(call.args[2])
            else:
                known[call.args[2]] = source.reshape(value(call.args[1]))
            return
        if name.startswith("executorch_prim::"):
            known[call.args[-1]] = runner._value(call.args[-1])
            return
        target = _find(name, overload)
        if target is None:
            self.unchecked[full] = "PyTorch does not know it"
            return
        if name == "aten::copy_" and not ran:  # of a loop that the runtime ran as one call
            known[call.args[0]] = runner._value(call.args[0])
            self.unchecked[full] = "the loop around it ran as one call"
            return
        written = [call.args[i] for i in _written(target)]
        if not written and not ran:
            return  # it made a number that only such a loop reads
        found = [runner._value(i) if ran else None for i in written]
        if name in _UNCHECKED or torch.Tag.nondeterministic_seeded in target.tags:
            self._learn(known, written, found)
            self.unchecked[full] = "no function of its arguments"
            return
        args = [value(i) for i in call.args[: len(schema_of(target).arguments)]]
        like = [self._empty(i) if f is None else f for i, f in zip(written, found, strict=True)]
        try:
            reference = _Reference(target, args, like)
            expected = reference.wide
        except Exception as error:  # PyTorch refuses what the runtime ran: no reference
            self.unchecked[full] = f"PyTorch: {first_line(error)[:100]}"
            self._learn(known, written, found)
            return
        if not ran:
            narrow = [_narrow(e, n) for e, n in zip(expected, like, strict=True)]
            self._learn(known, written, narrow)
            self._left_out.update(zip(map(self._place, written), narrow, strict=True))
            return
        self.checked[full] = self.checked.get(full, 0) + 1
        self._learn(known, written, found)
        for index in written:
            self._left_out.pop(self._place(index), None)
        if self.keep_results and isinstance(found[0], Tensor):
            self.results[place] = found[0]
        for number, result in enumerate(found):
            if self._read.isdisjoint([written[number], *self._parts(written[number])]):
                continue  # fusion leaves out what nobody reads
            message, difference = reference.compare(full.split(".")[0], number, result)
            if message:
                yield Suspect(*place, full, number, message, difference, fused)

    def _learn(self, known: dict[int, Any], written: Sequence[int], values: Sequence[Any]) -> None:
        for index, value in zip(written, values, strict=True):
            if isinstance(value, list):
                known.update(zip(self._parts(index), value, strict=True))
            else:
                known[index] = value

    def _place(self, index: int) -> Any:
        """Memory id and offset of a planned tensor; for other values, their index."""
        tensor = self.plan.values[index].val
        planned = getattr(tensor, "allocation_info", None)
        if planned is None:
            return index
        low, high = planned.memory_offset_low, planned.memory_offset_high
        return planned.memory_id, low, high

    def _seen_left_out(self, index: int) -> Tensor | None:
        """A view of a value that the runtime did not store: computed here from that value."""
        tensor = self.plan.values[index].val
        source = self._left_out.get(self._place(index))
        if not isinstance(source, Tensor) or not isinstance(tensor, schema.Tensor):
            return None
        fits = source.dtype == get_scalar_type(tensor.scalar_type)
        if not fits or source.numel() != math.prod(tensor.sizes):
            return None
        return source.reshape(tuple(tensor.sizes))

    def _empty(self, index: int) -> Any:
        tensor = self.plan.values[index].val
        if isinstance(tensor, schema.TensorList):
            return [self._empty(i) for i in tensor.items]
        if isinstance(tensor, schema.Tensor):
            return torch.empty(0, dtype=get_scalar_type(tensor.scalar_type))
        return None

    def _parts(self, index: int) -> list[int]:
        """The indices of a list's tensors; empty for other values."""
        value = self.plan.values[index].val
        return [i for i in value.items if i >= 0] if isinstance(value, _LISTS) else []

    def _names(self, call: Any) -> set[int]:
        """The values that an instruction reads or writes, including the tensors of lists."""
        if isinstance(call, schema.MoveCall):
            return {call.move_from, call.move_to}
        if isinstance(call, schema.JumpFalseCall):
            return {call.cond_value_index}
        args = set(getattr(call, "args", ()))
        return args.union(*(self._parts(index) for index in args))

    @cached_property
    def _last_use(self) -> dict[int, int] | None:
        """Value -> the last instruction that uses it; None if the method has loops or several
        chains."""
        if len(self.plan.chains) != 1:
            return None
        last: dict[int, int] = {}
        for number, instruction in enumerate(self.plan.chains[0].instructions):
            if isinstance(instruction.instr_args, schema.JumpFalseCall):
                return None
            last.update(dict.fromkeys(self._names(instruction.instr_args), number))
        return last

    @cached_property
    def _read(self) -> set[int]:
        """Values that are outputs, or are used by more than the instruction that computes them."""
        uses = Counter(2 * self.plan.outputs)
        for code in self.plan.chains:
            for instruction in code.instructions:
                uses.update(self._names(instruction.instr_args))
        return {index for index, n in uses.items() if n > 1}

    def _forget(self, call: Any, number: int, known: dict[int, Any]) -> None:
        if self._last_use is not None:
            for index in self._names(call):
                if self._last_use[index] == number:
                    known.pop(index, None)


class _Reference:
    """One operator in float64; in its own types where it refuses float64, or where a difference
    could be a rounding step that float64 takes elsewhere."""

    def __init__(self, target: Any, args: Sequence[Any], like: Sequence[Any]) -> None:
        self.target = target
        self.args = args
        self.like = like
        try:
            self.wide = self._call([_widen(a) for a in args], torch.float64)
            self.in_double = True
        except Exception:
            self.wide = self._call(args, None)
            self.in_double = False

    def _call(self, args: Sequence[Any], wide: torch.dtype | None) -> list[Any]:
        """Call the operator with copies of its arguments; returns the written ones."""
        if schema_of(self.target).name in _COPIES:
            narrow = self.like[0].is_floating_point() and wide is not None
            return [args[0].to(wide if narrow else self.like[0].dtype)]
        written = _written(self.target)
        call = list(args)
        for position, like in zip(written, self.like, strict=True):
            call[position] = _room(like, wide, args[position], self.target, position)
        positional, named = [], {}
        for argument, value in zip(schema_of(self.target).arguments, call, strict=True):
            value = _convert(str(argument.real_type), value, wide)
            if argument.kwarg_only:
                named[argument.name] = value
            else:
                positional.append(value)
        with torch.no_grad():
            returned = self.target(*positional, **named)
        out = [call[i] for i in written]
        return out if out else [returned]

    def compare(self, name: str, number: int, found: Any) -> tuple[str, Difference | None]:
        """What is wrong with output `number`, or nothing."""
        expected = self.wide[number]
        if isinstance(found, list):
            for f, e in zip(found, expected, strict=True):
                if tuple(f.shape) != tuple(e.shape):
                    return f"found a part of shape {list(f.shape)}, expected {list(e.shape)}", None
            if not found:
                return "", None
            found = torch.cat([f.reshape(-1) for f in found])
            expected = torch.cat([e.reshape(-1) for e in expected])
            return compare(found, expected, _loose(expected, found))
        if not isinstance(found, Tensor):
            return (
                ("", None) if found == expected else (f"found {found}, expected {expected}", None)
            )
        if tuple(found.shape) != tuple(expected.shape):
            return f"found shape {list(found.shape)}, expected {list(expected.shape)}", None
        if not found.is_floating_point():
            message, difference = compare(found, expected, torch.zeros(()))
        else:
            wide = [_widen(a) for a in self.args] if self.in_double else list(self.args)
            mode = torch.float64 if self.in_double else None
            allowed = bound(
                name, lambda a: self._call(a, mode), wide, expected.double(), number, found.dtype
            )
            message, difference = compare(found, expected, allowed)
        if message and self.in_double and self._same_as_eager(number, found):
            return "", None  # a step, such as floor's, that float64 takes elsewhere
        return message, difference

    def _same_as_eager(self, number: int, found: Tensor) -> bool:
        try:
            return bool(torch.equal(self._call(self.args, None)[number], found))
        except Exception:
            return False


def _loose(expected: Tensor, found: Tensor) -> Tensor:
    if not found.is_floating_point():
        return torch.zeros(())
    return 16 * torch.finfo(found.dtype).eps * expected.abs()


def _find(name: str, overload: str) -> Any:
    namespace, _, operator = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), operator, None)
    return getattr(packet, overload or "default", None)


def _written(target: Any) -> list[int]:
    return [
        i
        for i, a in enumerate(schema_of(target).arguments)
        if a.alias_info is not None and a.alias_info.is_write
    ]


def _widen(value: Any) -> Any:
    return map_floats(value, Tensor.double)


def _narrow(value: Any, like: Any) -> Any:
    if isinstance(value, list):
        return [_narrow(v, n) for v, n in zip(value, like, strict=True)]
    return value.to(like.dtype) if isinstance(value, Tensor) else value


def _room(like: Any, wide: torch.dtype | None, before: Any, target: Any, position: int) -> Any:
    """Memory for a written argument: a copy of what is there if it is an operand too."""
    if not schema_of(target).arguments[position].is_out:
        return before.clone() if isinstance(before, Tensor) else before
    if isinstance(like, list):
        return [_room(v, wide, None, target, position) for v in like]
    if not isinstance(like, Tensor):
        return like
    dtype = wide if wide is not None and like.is_floating_point() else like.dtype
    return torch.empty(0, dtype=dtype)


def _convert(kind: str, value: Any, wide: torch.dtype | None) -> Any:
    """A program's number as the object that PyTorch's schema wants."""
    if value is None:
        return None
    if "ScalarType" in kind and isinstance(value, int):
        dtype = get_scalar_type(ScalarType(value))
        return wide if wide is not None and dtype.is_floating_point else dtype
    if "MemoryFormat" in kind and isinstance(value, int):
        return _FORMATS[value]
    if "Layout" in kind:
        return torch.strided
    if "Device" in kind:
        return torch.device("cpu")
    return value
