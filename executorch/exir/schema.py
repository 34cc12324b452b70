"""A program as Python objects: one dataclass per table of `schema/program.fbs`.

The emitter builds these, the native writer turns them into the file, the native reader makes them
again from a file. A union field holds the object itself; its class is the discriminator.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from executorch.exir.backend.compile_spec_schema import CompileSpec as CompileSpec
from executorch.exir.scalar_type import ScalarType as ScalarType

# Bytes of a weight are borrowed from the tensor that owns them: anything with the buffer protocol.
Bytes = Any


@dataclass
class AllocationDetails:
    """Planned memory: byte `low | high << 32` of arena `memory_id` (1-based)."""

    memory_id: int
    memory_offset_low: int
    memory_offset_high: int

    @property
    def memory_offset(self) -> int:
        return self.memory_offset_high << 32 | self.memory_offset_low


class TensorShapeDynamism(IntEnum):
    STATIC = 0
    DYNAMIC_BOUND = 1  # sizes are upper bounds
    DYNAMIC_UNBOUND = 2


class TensorDataLocation(IntEnum):
    SEGMENT = 0
    EXTERNAL = 1


class DeviceType(IntEnum):
    CPU = 0
    CUDA = 1


@dataclass
class ExtraTensorInfo:
    mutable_data_segments_idx: int = 0
    fully_qualified_name: str | None = None
    location: TensorDataLocation = TensorDataLocation.SEGMENT
    device_type: DeviceType = DeviceType.CPU
    device_index: int = 0


@dataclass
class Tensor:
    """`sizes` extents, `dim_order` a permutation, outermost first; strides follow from both.

    data_buffer_idx > 0 without allocation_info: a constant; with it: the initial state of a mutable
    buffer. 0 without allocation_info: memory comes from the caller.
    """

    scalar_type: ScalarType
    storage_offset: int
    sizes: list[int]
    dim_order: list[int]
    requires_grad: bool
    layout: int
    data_buffer_idx: int
    allocation_info: AllocationDetails | None
    shape_dynamism: TensorShapeDynamism
    extra_tensor_info: ExtraTensorInfo | None = None


@dataclass
class Null:
    pass


@dataclass
class Int:
    int_val: int


@dataclass
class Bool:
    bool_val: bool


@dataclass
class Double:
    double_val: float


@dataclass
class String:
    string_val: str


@dataclass
class IntList:
    """Items are indices of Int values, so that symbolic integers can be members."""

    items: list[int]


@dataclass
class DoubleList:
    items: list[float]


@dataclass
class BoolList:
    items: list[bool]


@dataclass
class TensorList:
    """Items are indices of Tensor values that come earlier in the table."""

    items: list[int]


@dataclass
class OptionalTensorList:
    """As TensorList; -1 is None."""

    items: list[int]


KernelTypes = (
    Null
    | Int
    | Bool
    | Double
    | Tensor
    | String
    | IntList
    | DoubleList
    | BoolList
    | TensorList
    | OptionalTensorList
)


@dataclass
class EValue:
    val: KernelTypes


def bytes_of(data: Bytes) -> bytes:
    """A copy, also of what is computed while it is read (`_native.TransposedBytes`)."""
    return data.read(0, data.nbytes) if hasattr(data, "read") else bytes(data)


@dataclass
class Buffer:
    storage: Bytes

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (bytes_of(self.storage),)


@dataclass
class BackendDelegateInlineData:
    data: Bytes

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (bytes_of(self.data),)


@dataclass
class Operator:
    name: str  # "aten::add"
    overload: str  # "out"; empty if the operator has none


@dataclass
class KernelCall:
    op_index: int
    args: list[int]


@dataclass
class DelegateCall:
    delegate_index: int
    args: list[int]


@dataclass
class MoveCall:
    move_from: int
    move_to: int


@dataclass
class JumpFalseCall:
    cond_value_index: int
    destination_instruction: int


@dataclass
class FreeCall:
    value_index: int


InstructionArguments = KernelCall | DelegateCall | MoveCall | JumpFalseCall | FreeCall


@dataclass
class Instruction:
    instr_args: InstructionArguments


@dataclass
class Frame:
    filename: str
    lineno: int
    name: str
    context: str


@dataclass
class FrameList:
    items: list[Frame]


@dataclass
class Chain:
    inputs: list[int]
    outputs: list[int]
    instructions: list[Instruction]
    stacktrace: list[FrameList] | None


class DataLocation(IntEnum):
    INLINE = 0
    SEGMENT = 1


@dataclass
class BackendDelegateDataReference:
    location: DataLocation
    index: int


@dataclass
class BackendDelegate:
    id: str
    processed: BackendDelegateDataReference
    compile_specs: Sequence[CompileSpec]


@dataclass
class ContainerMetadata:
    """How flat inputs and outputs fold into the method's Python arguments and results, as JSON."""

    encoded_inp_str: str
    encoded_out_str: str


@dataclass
class NonConstBufferDevice:
    buffer_idx: int = 0
    device_type: DeviceType = DeviceType.CPU
    device_index: int = 0


@dataclass
class ExecutionPlan:
    name: str
    container_meta_type: ContainerMetadata
    values: list[EValue]
    inputs: list[int]
    outputs: list[int]
    chains: list[Chain]
    operators: list[Operator]
    delegates: list[BackendDelegate]
    non_const_buffer_sizes: list[int]  # [0, bytes of arena 1, bytes of arena 2, ...]
    non_const_buffer_device: list[NonConstBufferDevice] | None = None


@dataclass
class DataSegment:
    """Bytes of the file, from the segment base on."""

    offset: int
    size: int


@dataclass
class SubsegmentOffsets:
    segment_index: int
    offsets: list[int]


@dataclass
class NamedData:
    key: str
    segment_index: int


@dataclass
class Program:
    version: int
    execution_plan: list[ExecutionPlan]
    constant_buffer: list[Buffer]  # index 0 is reserved; moved into a segment when written
    backend_delegate_data: list[BackendDelegateInlineData]
    segments: list[DataSegment]
    constant_segment: SubsegmentOffsets
    mutable_data_segments: list[SubsegmentOffsets] | None = None
    named_data: list[NamedData] | None = None
