"""Parts of torch.export's serialization, by the names that they have in 1.5.1.

`deserialize_torch_artifact` reads fake tensors into the mode of the last `_CURRENT_DESERIALIZER`.
"""

from __future__ import annotations

import io
from typing import Any

from executorch.exir.serde.serialize import load_tensors, save_tensors
from executorch.exir.torch_internals import (
    GraphModuleDeserializer,
    GraphModuleSerializer,
    SerializeError,
)
from executorch.exir.torch_internals import (
    reconstruct_fake_tensor as _reconstruct_fake_tensor,
)

__all__ = [
    "GraphModuleDeserializer",
    "GraphModuleSerializer",
    "SerializeError",
    "_reconstruct_fake_tensor",
    "deserialize_torch_artifact",
    "serialize_torch_artifact",
]

_CURRENT_DESERIALIZER: list[GraphModuleDeserializer] = []


def serialize_torch_artifact(artifact: Any) -> bytes:
    """Tensors, in lists, dicts and so on, as an archive of `torch.save`; None as no bytes."""
    if artifact is None:
        return b""
    file = io.BytesIO()
    save_tensors(artifact, file)
    return file.getvalue()


def deserialize_torch_artifact(serialized: bytes) -> Any:
    """What `serialize_torch_artifact` was given; an empty dict for None."""
    if not serialized:
        return {}
    mode = _CURRENT_DESERIALIZER[-1].fake_tensor_mode if _CURRENT_DESERIALIZER else None
    return load_tensors(serialized, mode)
