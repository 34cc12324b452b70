from dataclasses import dataclass

from executorch.exir.scalar_type import ScalarType


@dataclass
class TensorLayout:
    """How the bytes of a named tensor are read: strides follow from sizes and dim order."""

    scalar_type: ScalarType
    sizes: list[int]
    dim_order: list[int]
