"""Archives of tensors, fake ones among them, and parts of torch.export's serialization, by the
names that they have in 1.5.1.

A fake tensor is kept as shape, type and whether it is a parameter; archives name the function
`_reconstruct_fake_tensor` of this module. `deserialize_torch_artifact` reads fake tensors into the
mode of the last `_CURRENT_DESERIALIZER`.
"""

from __future__ import annotations

import copyreg
import io
from typing import IO, Any

import torch

from executorch.exir.torch_internals import (
    FakeTensor,
    FakeTensorMode,
    GraphModuleDeserializer,
    GraphModuleSerializer,
    SerializeError,
    fake_tensors_read_into,
    reconstruct_fake_tensor,
    reduce_fake_tensor,
)

__all__ = [
    "GraphModuleDeserializer",
    "GraphModuleSerializer",
    "SerializeError",
    "deserialize_torch_artifact",
    "load_tensors",
    "save_tensors",
    "serialize_torch_artifact",
]

_CURRENT_DESERIALIZER: list[GraphModuleDeserializer] = []


def _reconstruct_fake_tensor(fields: bytes, is_parameter: bool) -> torch.Tensor:
    """The fake tensor that an archive describes, in the mode that is read into. A parameter has a
    gradient where its type can have one."""
    tensor: torch.Tensor = reconstruct_fake_tensor(fields, False)
    if not is_parameter:
        return tensor
    return torch.nn.Parameter(tensor, tensor.is_floating_point() or tensor.is_complex())


def _reduce_fake_tensor(tensor: FakeTensor) -> tuple[Any, Any]:
    _, described = reduce_fake_tensor(tensor)
    return _reconstruct_fake_tensor, described


def load_tensors(archive: bytes, mode: FakeTensorMode | None = None) -> Any:
    """What `save_tensors` wrote; fake tensors become ones of `mode`, by default a new one."""
    mode = mode or FakeTensorMode(allow_non_fake_inputs=True)
    with fake_tensors_read_into(mode, _reconstruct_fake_tensor):
        return torch.load(io.BytesIO(archive), weights_only=True)


def save_tensors(value: Any, file: IO[bytes]) -> None:
    """`torch.save`, also of fake tensors, of which only shape and type are kept."""
    taken = FakeTensor in copyreg.dispatch_table
    if not taken:
        copyreg.pickle(FakeTensor, _reduce_fake_tensor)
    try:
        torch.save(value, file)
    finally:
        if not taken:
            del copyreg.dispatch_table[FakeTensor]


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
