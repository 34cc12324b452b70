"""Looks inside delegates: what each of their operations gave, against PyTorch on its own operands.

The run is recorded once with all values. A backend says what its operations should compute
(`exir/backend/reference.py`); one that does not is checked by the outputs of the method only.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from executorch.devtools.inspector import Inspector
from executorch.devtools.parity.bounds import bound, is_contraction
from executorch.devtools.parity.compare import Difference, compare
from executorch.exir import schema
from executorch.exir._serialize._program import PTEFile
from executorch.exir.backend.reference import Function, ReferenceGraph, ReferenceNode, find_reader
from executorch.exir.error import first_line

# Sizes of the debug buffer, tried in turn.
_BUFFER_BYTES = (1 << 25, 1 << 28, 1 << 31)
_ROUNDING = 0.5 + 1e-3  # of a quantized result, in steps


@dataclass(frozen=True)
class Wrong:
    """An operation of a delegate whose result PyTorch does not confirm."""

    operation: str
    output: int
    message: str
    difference: Difference | None


class Delegates:
    """Checks the delegates of one method, called with `inputs`. `checked` counts operations by
    kind; `unchecked` has the reasons for those that were not checked."""

    def __init__(self, data: bytes, file: PTEFile, method: str, inputs: Sequence[Any]) -> None:
        self.checked: dict[str, int] = {}
        self.unchecked: dict[str, str] = {}
        self._data = data
        self._file = file
        self._method = method
        self._inputs = inputs

    def wrong(self, delegate: schema.BackendDelegate, instruction: int) -> Iterator[Wrong]:
        """The operations of one delegate call whose results are wrong, in order."""
        reader = find_reader(delegate.id)
        if reader is None:
            self.unchecked[delegate.id] = "checked by the outputs of the method only"
            return
        blob = self._file.program.backend_delegate_data[delegate.processed.index].data
        try:
            graph = reader(bytes(blob), self._named_data)
        except (ValueError, KeyError) as error:
            self.unchecked[delegate.id] = str(error)
            return
        if not self._recorded:
            self.unchecked[delegate.id] = "the recorded values of a run do not fit into memory"
            return
        yield from self._compare(graph, instruction)

    @cached_property
    def _named_data(self) -> dict[str, bytes]:
        store = self._file.named_data
        if store is None:
            return {}
        return {key: store.buffers[e.buffer_index] for key, e in store.pte_data.items()}

    @cached_property
    def _recorded(self) -> dict[tuple[int, str | None], list[Any]]:
        """(instruction, operation, or None for the call's arguments) -> values; empty if there is
        no room for them."""
        from executorch.runtime import Runtime

        for size in _BUFFER_BYTES:
            with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                dump, values = Path(folder) / "run.etdp", Path(folder) / "run.values"
                program = Runtime.get().load_program(
                    self._data, enable_etdump=True, debug_buffer_size=size
                )
                program.load_method(self._method).execute(self._inputs)
                try:
                    program.write_etdump_result_to_file(str(dump), str(values))
                except RuntimeWarning:
                    continue
                return _by_place(Inspector(str(dump), debug_buffer_path=str(values)))
        return {}

    def _compare(self, graph: ReferenceGraph, instruction: int) -> Iterator[Wrong]:
        known: dict[int, Tensor] = {n: t.double() for n, t in graph.constants.items()}
        arguments = self._recorded[instruction, None]
        for slot, (value, dims) in graph.inputs.items():
            known[value] = _meaning(graph, value, _in_memory_order(arguments[slot], dims))
        for node in graph.nodes:
            found = self._recorded.get((instruction, node.name), [])
            given = [known[i] for i in node.inputs if i in known]
            expected = None
            reason = "no reference"
            if node.function is not None and len(given) == len(node.inputs):
                try:
                    expected = _held(node)(given)
                except RuntimeError as error:  # PyTorch refuses what the delegate ran
                    reason = f"PyTorch: {first_line(error)[:100]}"
            if node.moves and expected is not None and not found:
                known[node.outputs[0]] = expected[0]
                continue
            for value, tensor in zip(node.outputs, found, strict=False):
                known[value] = _meaning(graph, value, tensor)
            kind = node.name.split(" ")[0]
            if expected is None or not found:
                self.unchecked[kind] = reason if expected is None else "not recorded"
                continue
            self.checked[kind] = self.checked.get(kind, 0) + 1
            yield from self._compare_node(graph, node, given, expected, found)

    def _compare_node(
        self,
        graph: ReferenceGraph,
        node: ReferenceNode,
        given: Sequence[Tensor],
        expected: Sequence[Tensor],
        found: Sequence[Tensor],
    ) -> Iterator[Wrong]:
        assert node.function is not None
        for number, (value, raw, wanted) in enumerate(
            zip(node.outputs, found, expected, strict=True)
        ):
            if raw.shape != wanted.shape:
                text = f"found shape {list(raw.shape)}, expected {list(wanted.shape)}"
                yield Wrong(node.name, number, text, None)
                continue
            unit = graph.types.get(value, torch.float32)
            function = node.function if is_contraction(node.kind) else _held(node)
            allowed = bound(node.kind, function, given, wanted, number, unit)
            if node.kind == "aten::upsample_bilinear2d":
                # A weight is off by the rounding of a position, on both axes and of both pixels.
                extent, largest = max(given[0].shape[1:3]), given[0].abs().amax()
                allowed = allowed + 16 * torch.finfo(unit).eps * extent * largest
            if node.by_row:
                rows = wanted.flatten(wanted.dim() - node.by_row)
                low, high = rows.amin(-1).clamp(max=0), rows.amax(-1).clamp(min=0)
                step = (high - low) / 255
                allowed = allowed + step.reshape(step.shape + (1,) * node.by_row)
            quantization = graph.quantization.get(value)
            if quantization is not None:
                q = quantization
                reach = ((q.low - q.zero_point) * q.scale, (q.high - q.zero_point) * q.scale)
                wanted = wanted.clamp(*reach)
                allowed = allowed + _ROUNDING * q.scale
            message, difference = compare(_meaning(graph, value, raw), wanted, allowed)
            if message:
                yield Wrong(node.name, number, message, difference)


def _by_place(inspector: Inspector) -> dict[tuple[int, str | None], list[Any]]:
    values: dict[tuple[int, str | None], list[Any]] = {}
    for block in inspector.event_blocks:
        for event in block.events if block.name == "Execute" else ():
            if event.is_delegated_op or event.name == "DELEGATE_CALL":
                operation = event.name if event.is_delegated_op else None
                given = list(event.debug_data)
                if any(b'"images":true' in m for m in event.raw_delegate_debug_metadatas):
                    given = [image.movedim(1, -1) for image in given]
                values[event._instruction_id, operation] = given
    return values


def _held(node: ReferenceNode) -> Function:
    """The node's function within its bounds."""
    function, bounds = node.function, node.bounds
    assert function is not None
    return function if bounds is None else lambda a: [v.clamp(*bounds) for v in function(a)]


def _meaning(graph: ReferenceGraph, value: int, tensor: Tensor) -> Tensor:
    q = graph.quantization.get(value)
    real = tensor.double()
    return real if q is None or tensor.is_floating_point() else (real - q.zero_point) * q.scale


def _in_memory_order(tensor: Tensor, dims: Sequence[int]) -> Tensor:
    """As the delegate sees it: pictures whose channels lie innermost have them last."""
    last = tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last)
    if last and (not tensor.is_contiguous() or list(tensor.permute(0, 2, 3, 1).shape) == dims):
        return tensor.permute(0, 2, 3, 1)
    return tensor
