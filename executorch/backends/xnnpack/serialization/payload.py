"""A payload that is being built: values and nodes in order, constants as named data."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from executorch.backends.xnnpack.serialization import _native
from executorch.exir._serialize._named_data_store import NamedDataStore
from executorch.exir.tensor import require_extents

NO_ID = 0xFFFFFFFF
NO_HANDLE = 0xFFFF
MAX_RANK = 6
_IN_NAMED_DATA = 2**64 - 1  # an offset

# Limits of the runtime: extents, strides, paddings and dilations of windows; the number of products
# of 8-bit integers that a 32-bit sum can hold. And the partitioner's reasons for what exceeds them.
MAX_EXTENT, MAX_CONVOLUTION = 2**31 - 1, 2**16
MAX_TERMS = 65_000
TOO_LARGE_A_WINDOW = "a window, or its stride, padding or dilation, that is too large"
TOO_MANY_TERMS = "sums of more than 65,000 integer products"

# XNNDatatype of plain tensors.
DATATYPES = {
    torch.float32: 1,
    torch.float16: 2,
    torch.int32: 12,
    torch.int64: 12,  # of results only, which the runtime widens
    torch.bfloat16: 14,
}

# Members of XNodeUnion, without their prefix, and their numbers.
KINDS = {name: i for i, name in enumerate(_native.NODE_FIELDS, start=1)}


def kind_name(number: int) -> str:
    return list(KINDS)[number - 1]


Field = int | float | list[int] | None
Bounds = tuple[float, float] | None
EXTERNAL_INPUT, EXTERNAL_OUTPUT = 1, 2


@dataclass
class Payload:
    store: NamedDataStore = field(default_factory=NamedDataStore)
    values: list[tuple[int, list[int], int, int, int, _native.Member | None]] = field(
        default_factory=list
    )
    nodes: list[tuple[_native.Member, int, Bounds]] = field(default_factory=list)
    # Offset, bytes, key of named data; the first stands for none.
    constants: list[tuple[int, int, str]] = field(default_factory=lambda: [(0, 0, "")])
    file: str | None = None  # that constants go to from now on; else into the program
    n_externals: int = 0  # the arguments of a call; some may be no values
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)

    def value(
        self,
        datatype: int,
        dims: Sequence[int],
        external: tuple[int, int] = (NO_ID, 0),
        constant: int = 0,
        quantization: _native.Member | None = None,
    ) -> int:
        """Add a value and return its id. `external`: its position among the call's arguments, and
        whether it is an input or an output."""
        slot, flags = external
        require_extents(dims)
        # A scalar is stored as a vector with one element.
        self.values.append((datatype, list(dims) or [1], constant, slot, flags, quantization))
        number = len(self.values) - 1
        if flags:
            (self.inputs if flags == EXTERNAL_INPUT else self.outputs).append(number)
        return number

    def constant(self, tensor: torch.Tensor) -> int:
        return self.value(DATATYPES[tensor.dtype], tensor.shape, constant=self.data(tensor))

    def data(self, tensor: torch.Tensor, prefix: str = "") -> int:
        """Add a tensor's bytes to the constants and return the entry's index. Equal bytes are
        stored once in a program."""
        flat = tensor.detach().resolve_neg().contiguous().reshape(-1).view(torch.uint8).numpy()
        key = prefix + hashlib.sha256(flat).hexdigest()
        if self.file is not None:  # another call may want them in the program
            key += f"_{self.file}"
        self.store.add_named_data(key, flat.data, alignment=16, external_tag=self.file)
        self.constants.append((_IN_NAMED_DATA, flat.nbytes, key))
        return len(self.constants) - 1

    def node(
        self, kind: str, *fields: Field, bounds: Bounds = None, debug_handle: int = NO_HANDLE
    ) -> None:
        """`fields` in the order of schema.fbs."""
        self.nodes.append(((KINDS[kind], fields), debug_handle, bounds))

    def to_bytes(self) -> bytes:
        return _native.write_payload(
            [(number, *value) for number, value in enumerate(self.values)],
            self.nodes,
            self.constants,
            self.n_externals,
            self.inputs,
            self.outputs,
            version="0",
        )
