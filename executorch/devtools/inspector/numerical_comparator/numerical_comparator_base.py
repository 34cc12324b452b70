"""What comparators have in common."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch

from executorch.devtools.inspector._inspector_utils import flat, to_float_tensor

if TYPE_CHECKING:
    import pandas as pd

    from executorch.devtools.inspector._inspector import Inspector

DebugHandle = tuple[int, ...]
# (handles, value) ahead of time -> (handles, value) at run time
IntermediateOutputMapping = dict[tuple[DebugHandle, Any], tuple[DebugHandle, Any]]


class NumericalComparatorBase(ABC):
    """For `Inspector.calculate_numeric_gap`, which sets `inspector` where it was not given."""

    def __init__(self, inspector: Inspector | None = None) -> None:
        self._inspector = inspector

    @property
    def inspector(self) -> Inspector | None:
        return self._inspector

    def preprocessing(self, mapping: IntermediateOutputMapping) -> IntermediateOutputMapping:
        """Called with all values before they are compared, e.g. to dequantize them."""
        return mapping

    @abstractmethod
    def element_compare(self, a: Any, b: Any) -> float:
        """The gap between `a`, ahead of time, and `b`, at run time."""

    def compare(
        self,
        mapping: IntermediateOutputMapping,
        aot_debug_handle_to_op_names: Mapping[DebugHandle, list[str]],
        runtime_debug_handle_to_op_names: Mapping[DebugHandle, list[str]],
    ) -> pd.DataFrame:
        """One row for each pair of values."""
        import pandas as pd

        rows = []
        for (aot_handle, aot), (runtime_handle, runtime) in self.preprocessing(mapping).items():
            pairs = zip(flat(_value(aot)), flat(_value(runtime)), strict=True)
            rows.append(
                {
                    "aot_debug_handle": aot_handle,
                    "aot_ops": aot_debug_handle_to_op_names.get(aot_handle, []),
                    "aot_intermediate_output": _value(aot),
                    "runtime_debug_handle": runtime_handle,
                    "runtime_ops": runtime_debug_handle_to_op_names.get(runtime_handle, []),
                    "runtime_intermediate_output": _value(runtime),
                    "gap": [self.element_compare(a, b) for a, b in pairs],
                }
            )
        return pd.DataFrame(rows, columns=_COLUMNS)


_COLUMNS = [
    "aot_debug_handle",
    "aot_ops",
    "aot_intermediate_output",
    "runtime_ops",
    "runtime_debug_handle",
    "runtime_intermediate_output",
    "gap",
]


@dataclasses.dataclass(frozen=True, eq=False)
class Held:
    """A value that is a key of a mapping, whether it can be hashed or not."""

    value: Any


def _value(held: Any) -> Any:
    return held.value if isinstance(held, Held) else held


class MeasureComparator(NumericalComparatorBase):
    """The gap is a function of two tensors of one shape."""

    measure: Callable[[torch.Tensor, torch.Tensor], float]
    name: str

    def element_compare(self, a: Any, b: Any) -> float:
        left, right = to_float_tensor(a), to_float_tensor(b)
        if left.shape != right.shape:
            raise ValueError(
                f"Error computing {self.name} difference between tensors: their shapes are "
                f"{list(left.shape)} and {list(right.shape)}"
            )
        return type(self).measure(left, right)
