"""External data files (.ptd) from Python: what writes and reads them."""

from executorch.exir._serialize._flat_tensor import (
    AlignedData,
    FlatTensorConfig,
    FlatTensorHeader,
    FlatTensorSerializer,
)

__all__ = ["AlignedData", "FlatTensorConfig", "FlatTensorHeader", "FlatTensorSerializer"]
