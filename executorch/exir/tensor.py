"""TensorSpec: what is known about a tensor ahead of time, and where the planner puts it.

dim order   the dimensions from outermost to innermost, a permutation; strides follow from
            sizes and dim order, nothing else is stored in a program
dynamism    STATIC; DYNAMIC_BOUND: sizes are upper bounds; DYNAMIC_UNBOUND: no bound is known
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from typing import Any

import torch

from executorch.exir import schema
from executorch.exir.scalar_type import ScalarType
from executorch.exir.schema import DeviceType, ExtraTensorInfo, TensorShapeDynamism

CHANNELS_LAST = (0, 2, 3, 1)
_INT32_MAX = 2**31 - 1
_MOST_DIMENSIONS = 16  # kTensorDimensionLimit of the runtime


class AddressSpaceOverflowException(Exception):
    """A planned offset does not fit into 64 bits."""


_DTYPES: dict[torch.dtype, ScalarType] = {
    torch.uint8: ScalarType.BYTE,
    torch.int8: ScalarType.CHAR,
    torch.int16: ScalarType.SHORT,
    torch.int32: ScalarType.INT,
    torch.int64: ScalarType.LONG,
    torch.float16: ScalarType.HALF,
    torch.float32: ScalarType.FLOAT,
    torch.float64: ScalarType.DOUBLE,
    torch.complex32: ScalarType.COMPLEX32,
    torch.complex64: ScalarType.COMPLEX64,
    torch.complex128: ScalarType.COMPLEX128,
    torch.bool: ScalarType.BOOL,
    torch.qint8: ScalarType.QINT8,
    torch.quint8: ScalarType.QUINT8,
    torch.qint32: ScalarType.QINT32,
    torch.bfloat16: ScalarType.BFLOAT16,
    torch.quint4x2: ScalarType.QUINT4x2,
    torch.quint2x4: ScalarType.QUINT2x4,
    torch.bits16: ScalarType.BITS16,
    torch.float8_e5m2: ScalarType.FLOAT8E5M2,
    torch.float8_e4m3fn: ScalarType.FLOAT8E4M3FN,
    torch.float8_e5m2fnuz: ScalarType.FLOAT8E5M2FNUZ,
    torch.float8_e4m3fnuz: ScalarType.FLOAT8E4M3FNUZ,
    torch.uint16: ScalarType.UINT16,
    torch.uint32: ScalarType.UINT32,
    torch.uint64: ScalarType.UINT64,
}
_SCALAR_TYPES = {scalar_type: dtype for dtype, scalar_type in _DTYPES.items()}


def scalar_type_enum(dtype: torch.dtype) -> ScalarType:
    if dtype not in _DTYPES:
        raise ValueError(f"dtype {dtype} has no scalar type in the program format")
    return _DTYPES[dtype]


def get_scalar_type(enum: ScalarType) -> torch.dtype:
    return _SCALAR_TYPES[ScalarType(enum)]


def layout_enum(layout: torch.layout) -> int:
    if layout is not torch.strided:
        raise ValueError(f"layout {layout} cannot be stored in a program; use strided tensors")
    return 0


def memory_format_enum(memory_format: torch.memory_format) -> int:
    formats = {torch.contiguous_format: 0, torch.preserve_format: 1}
    if memory_format not in formats:
        raise ValueError(
            f"memory format {memory_format} cannot be an argument; contiguous and preserve can"
        )
    return formats[memory_format]


def num_bytes_from_shape_and_dtype(shape: Sequence[Any], dtype: torch.dtype) -> int:
    numel = 1
    for extent in shape:
        numel = numel * extent
    return numel * dtype.itemsize


def contiguous_stride_from_shape(shape: Sequence[Any]) -> tuple[int, ...]:
    return tuple(stride_from_dim_order(shape, range(len(shape))))


def stride_from_dim_order(sizes: Sequence[Any], dim_order: Sequence[int]) -> list[int]:
    """Strides in elements; a zero extent counts as 1."""
    strides: list[Any] = [0] * len(sizes)
    step: Any = 1
    for dim in reversed(list(dim_order)):
        strides[dim] = step
        extent = sizes[dim]
        step = step * (1 if isinstance(extent, int) and extent == 0 else extent)
    return strides


def dim_order_from_stride(stride: Sequence[Any]) -> tuple[int, ...]:
    """Dimensions by descending stride; equal strides keep ascending dimension order.

    Symbolic strides compare by their upper bounds, or hints where there are none. Without either, a
    multiple of another stride is larger, and what is none cannot be compared (torch's error for
    conditions on unknown sizes). RuntimeError for stride 0: the memory of an expanded tensor is in
    no order.
    """
    numbers = list(stride)
    if any(not isinstance(s, int) for s in numbers):
        from executorch.exir.sym_util import largest_seen

        known = [largest_seen(s) for s in numbers]
        numbers = numbers if None in known else known
    if any(isinstance(s, int) and s == 0 for s in numbers):
        raise RuntimeError(
            f"strides {tuple(numbers)} contain 0 (an expanded tensor); call .contiguous() first"
        )
    if all(isinstance(s, int) for s in numbers):
        return tuple(sorted(range(len(numbers)), key=lambda dim: -numbers[dim]))
    larger_first = cmp_to_key(_order)
    return tuple(sorted(range(len(numbers)), key=lambda dim: larger_first(numbers[dim])))


def _order(a: Any, b: Any) -> int:
    """-1 where stride a is the larger one, 1 where b is, 0 for equal strides."""
    from executorch.exir.sym_util import is_multiple

    smaller, larger = is_multiple(b, a), is_multiple(a, b)
    return smaller - larger if smaller or larger else int(bool(a < b)) - int(bool(b < a))


def dim_order_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """`dim_order_from_stride`, where extents of 1 do not make contiguous or channels-last tensors
    anything else."""
    identity = tuple(range(tensor.dim()))
    static = _is_static(tensor.shape)
    if tensor.dim() < 2 or (static and tensor.numel() == 0):
        return identity
    order = dim_order_from_stride(tensor.stride())
    if order in (identity, CHANNELS_LAST) or not static:
        return order
    if tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last):
        return CHANNELS_LAST
    return identity if tensor.is_contiguous() else order


def _is_static(shape: Sequence[Any]) -> bool:
    return all(isinstance(s, int) for s in shape)


def calculate_aligned_num_bytes(num: int, alignment: int) -> int:
    return (num + alignment - 1) // alignment * alignment


def determine_tensor_dynanism(shape: Sequence[Any]) -> TensorShapeDynamism:
    return TensorShapeDynamism.STATIC if _is_static(shape) else TensorShapeDynamism.DYNAMIC_BOUND


class TensorSpec:
    """One tensor of the graph: type, shape and, once planned, place.

    Extents in `shape` are ints, or SymInts until symbolic shapes are evaluated. `lifetime` is
    [first, last] node index, both inclusive. `storage_base`: the tensor lies inside the memory of
    another spec, `storage_base_offset` bytes from its start, and is not planned itself. Compared
    and hashed by identity: two tensors with equal fields are two.
    """

    def __init__(
        self,
        dtype: torch.dtype,
        shape: Sequence[Any],
        layout: torch.layout = torch.strided,
        is_sparse: bool = False,
        const: bool = False,
        requires_grad: bool = False,
        extra_tensor_info: ExtraTensorInfo | None = None,
    ) -> None:
        self.scalar_type = dtype
        self.shape: list[Any] = list(shape)
        self.layout = layout
        self.is_sparse = is_sparse
        self.const = const
        self.requires_grad = requires_grad
        self.extra_tensor_info = extra_tensor_info
        self.dim_order: tuple[int, ...] = tuple(range(len(self.shape)))
        self.shape_dynamism = determine_tensor_dynanism(self.shape)
        self.alignment = 16
        self.storage: Any = None
        self.device = DeviceType.CPU
        self.device_index = 0
        self.init_mem_planning_fields()

    @classmethod
    def from_tensor(cls, tensor: torch.Tensor, const: bool = False) -> TensorSpec:
        if tensor.layout is not torch.strided:
            raise ValueError(f"a {tensor.layout} tensor cannot be in a program; use a strided one")
        spec = cls(
            dtype=tensor.dtype,
            shape=tensor.shape,
            layout=tensor.layout,
            const=const,
            requires_grad=tensor.requires_grad,
        )
        spec.dim_order = dim_order_of(tensor)
        return spec

    def init_mem_planning_fields(self) -> None:
        self.lifetime: list[Any] = [None, None]
        self.mem_id: int | None = None
        self.mem_obj_id: int | None = None
        self.mem_offset: int | None = None
        self.storage_base: TensorSpec | None = None
        self.storage_base_offset = 0

    @property
    def inplace_base(self) -> TensorSpec | None:
        """The spec whose memory this one shares from its start. ValueError where it shares another
        part of it."""
        if self.storage_base is not None and self.storage_base_offset != 0:
            raise ValueError(
                "inplace_base is a storage_base at offset 0; this spec begins at offset "
                f"{self.storage_base_offset}"
            )
        return self.storage_base

    @inplace_base.setter
    def inplace_base(self, base: TensorSpec | None) -> None:
        if self.storage_base_offset != 0:
            raise ValueError(
                "inplace_base can be set while storage_base_offset is 0; it is "
                f"{self.storage_base_offset}"
            )
        self.storage_base = base

    @property
    def stride(self) -> tuple[Any, ...]:
        return tuple(stride_from_dim_order(self.shape, self.dim_order))

    @property
    def dtype(self) -> torch.dtype:
        return self.scalar_type

    def nbytes(self) -> int:
        return num_bytes_from_shape_and_dtype(self.shape, self.scalar_type)

    @property
    def allocated_memory(self) -> int:
        return calculate_aligned_num_bytes(self.nbytes(), self.alignment)

    def realign(self, new_alignment: int) -> int:
        """Sets the alignment; returns the bytes the tensor then takes."""
        self.alignment = new_alignment
        return self.allocated_memory

    @property
    def is_dynamic_shape_tensor(self) -> bool:
        return self.shape_dynamism is not TensorShapeDynamism.STATIC

    @property
    def is_static_shape_tensor(self) -> bool:
        return self.shape_dynamism is TensorShapeDynamism.STATIC

    @property
    def is_upper_bound_tensor(self) -> bool:
        return self.shape_dynamism is TensorShapeDynamism.DYNAMIC_BOUND

    @property
    def is_dynamic_unbound_tensor(self) -> bool:
        return self.shape_dynamism is TensorShapeDynamism.DYNAMIC_UNBOUND

    def debug(self) -> str:
        """All planning fields in one line."""
        return (
            f"TensorSpec(id={id(self)}, const={self.const}, scalar_type={self.scalar_type}, "
            f"allocated_memory={self.allocated_memory}, mem_id={self.mem_id}, "
            f"mem_offset={self.mem_offset}, lifetime={self.lifetime}, "
            f"shape_dynamism={int(self.shape_dynamism)}, shape={self.shape})"
        )

    def __repr__(self) -> str:
        return (
            f"TensorSpec(dtype={self.scalar_type}, shape={self.shape}, layout={self.layout}, "
            f"is_sparse={self.is_sparse}, shape_dynamism={int(self.shape_dynamism)}, "
            f"const={self.const}, requires_grad={self.requires_grad}, "
            f"device={self.device.name}:{self.device_index})"
        )


def make_allocation_info(mem_id: int, mem_offset: int) -> schema.AllocationDetails:
    if mem_offset < 0:
        raise ValueError(f"offset {mem_offset} is negative")
    if mem_offset >= 2**64:
        raise AddressSpaceOverflowException(f"offset {mem_offset} does not fit into 64 bits")
    return schema.AllocationDetails(
        memory_id=mem_id,
        memory_offset_low=mem_offset & 0xFFFFFFFF,
        memory_offset_high=mem_offset >> 32,
    )


def require_extents(sizes: Sequence[int]) -> None:
    """Raise ValueError where the runtime's tensors have no such sizes."""
    if any(extent < 0 or extent > _INT32_MAX for extent in sizes):
        raise ValueError(f"sizes {list(sizes)}: an extent must be from 0 to {_INT32_MAX}")


def make_tensor_value(
    data_buffer_idx: int, allocation_info: schema.AllocationDetails | None, spec: TensorSpec
) -> schema.Tensor:
    """The Tensor value of a spec whose shape is numbers."""
    sizes = [int(extent) for extent in spec.shape]
    require_extents(sizes)
    if len(sizes) > _MOST_DIMENSIONS:
        raise ValueError(
            f"sizes {sizes}: {len(sizes)} dimensions, the runtime takes at most {_MOST_DIMENSIONS}"
        )
    extra = spec.extra_tensor_info
    if spec.device is not DeviceType.CPU:
        extra = schema.ExtraTensorInfo(
            fully_qualified_name=extra.fully_qualified_name if extra else None,
            location=extra.location if extra else schema.TensorDataLocation.SEGMENT,
            device_type=spec.device,
            device_index=spec.device_index,
        )
    return schema.Tensor(
        scalar_type=scalar_type_enum(spec.scalar_type),
        storage_offset=0,
        sizes=sizes,
        dim_order=list(spec.dim_order),
        requires_grad=spec.requires_grad,
        layout=layout_enum(spec.layout),
        data_buffer_idx=data_buffer_idx,
        allocation_info=allocation_info,
        shape_dynamism=spec.shape_dynamism,
        extra_tensor_info=extra,
    )


def check_spec(tensor: torch.Tensor, spec: TensorSpec) -> None:
    """AssertionError unless `spec` describes `tensor`."""
    assert tensor.dtype == spec.dtype, f"dtype {tensor.dtype} is not the spec's {spec.dtype}"
    assert list(tensor.shape) == spec.shape, f"shape {tensor.shape} is not the spec's {spec.shape}"
    assert tensor.layout == spec.layout, f"layout {tensor.layout} is not the spec's {spec.layout}"
