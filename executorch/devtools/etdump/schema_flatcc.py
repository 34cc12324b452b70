"""What an ETDump holds, field by field as in `etdump.fbs`; an absent field is None."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from executorch.exir.scalar_type import ScalarType
from executorch.exir.schema import Bool, ContainerMetadata, Double, Int, Null, String

__all__ = [
    "AllocationEvent",
    "Allocator",
    "Bool",
    "ContainerMetadata",
    "DebugEvent",
    "Double",
    "ETDumpFlatCC",
    "Event",
    "Float",
    "Int",
    "Null",
    "PROFILE_EVENT_ENUM",
    "ProfileEvent",
    "RunData",
    "ScalarType",
    "String",
    "Tensor",
    "TensorList",
    "Value",
    "ValueType",
]


@dataclass
class Tensor:
    """`offset` is where its bytes begin in the debug buffer; -1 for a tensor without bytes."""

    scalar_type: ScalarType
    sizes: list[int]
    strides: list[int]
    offset: int | None


@dataclass
class TensorList:
    tensors: list[Tensor]


@dataclass
class Float:
    float_val: float


class ValueType(Enum):
    """The field of `Value` that is set, as `Value.val` spells it."""

    NULL = "Null"
    INT = "Int"
    BOOL = "Bool"
    FLOAT = "Float"
    DOUBLE = "Double"
    TENSOR = "Tensor"
    TENSOR_LIST = "TensorList"
    STRING = "String"


@dataclass
class Value:
    """A recorded value; `output` is set for an output of the program."""

    val: str
    tensor: Tensor | None
    tensor_list: TensorList | None
    int_value: Int | None
    float_value: Float | None
    double_value: Double | None
    bool_value: Bool | None
    output: Bool | None


@dataclass
class DebugEvent:
    """A value. One that belongs to no chain has chain_index 2**64 - 1."""

    name: str | None
    chain_index: int
    instruction_id: int
    delegate_debug_id_int: int | None
    delegate_debug_id_str: str | None
    debug_entry: Value


class PROFILE_EVENT_ENUM(Enum):
    RUN_MODEL = "Method::execute"
    OPERATOR_CALL = "OPERATOR_CALL"
    DELEGATE_CALL = "DELEGATE_CALL"
    LOAD_MODEL = "Program::load_method"


@dataclass
class ProfileEvent:
    """A stretch of time, in ticks of the runtime's clock.

    An operation of a delegate has no name but an id, a number (-1 when absent) or a string.
    """

    name: str | None
    chain_index: int
    instruction_id: int
    delegate_debug_id_int: int | None
    delegate_debug_id_str: str | None
    delegate_debug_metadata: bytes | None
    start_time: int
    end_time: int


@dataclass
class AllocationEvent:
    """`allocator_id` counts the block's allocators from 1; the size is in bytes."""

    allocator_id: int
    allocation_size: int


@dataclass
class Allocator:
    name: str


@dataclass
class Event:
    """Exactly one field is set."""

    profile_event: ProfileEvent | None
    allocation_event: AllocationEvent | None
    debug_event: DebugEvent | None


@dataclass
class RunData:
    """A block of events: one load or one execution."""

    name: str
    bundled_input_index: int | None
    allocators: list[Allocator] | None
    events: list[Event] | None


@dataclass
class ETDumpFlatCC:
    version: int
    run_data: list[RunData]
