"""External data files (.ptd) from Python: what writes and reads them."""

from executorch.exir._serialize._flat_tensor import FlatTensorConfig, FlatTensorSerializer

__all__ = ["FlatTensorConfig", "FlatTensorSerializer"]
