"""Train the weights of a program where it runs.

>>> module = _load_for_executorch_for_training("net.pte")
>>> (loss,) = module.forward_backward("forward", [x, y])
>>> optimizer = get_sgd_optimizer(module.named_parameters(), lr=0.1, momentum=0.9)
>>> optimizer.step(module.named_gradients())

Programs are those of `torch.export.experimental._export_forward_backward`. Tensors are PyTorch's,
or NumPy's where PyTorch is not imported.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from executorch.extension.pybindings.portable_lib import (
    ExecuTorchModule,
    _load_for_executorch,
    _load_for_executorch_from_buffer,
)

try:
    from executorch.extension.pybindings._C import ExecuTorchSGD, get_sgd_optimizer, save_ptd
except ImportError as e:
    raise ImportError(f"the native runtime was built without training ({e}); ./dev build") from e

__all__ = [
    "ExecuTorchSGD",
    "TrainingModule",
    "_load_for_executorch_for_training",
    "_load_for_executorch_for_training_from_buffer",
    "get_sgd_optimizer",
    "save_ptd",
]


class TrainingModule:
    """A program with methods for training.

    A method's parameters are its own memory: what an optimizer writes there stays. `module` may
    have external data: `_load_for_executorch(path, data_path)`.
    """

    def __init__(self, module: ExecuTorchModule) -> None:
        self.model = module
        self._places: dict[str, tuple[int, int, list[str]]] = {}
        self._gradients: dict[str, Any] | None = None
        self._parameters: dict[str, Any] | None = None

    def forward_backward(self, method_name: str, inputs: Sequence[Any]) -> list[Any]:
        """Run the method: copies of its results, such as the loss, without gradients.

        Raises RuntimeError for a method that is not there, or is not for training.
        """
        self._gradients = None
        if method_name not in self._places:
            self._places[method_name] = self.model.joint_outputs(method_name)
        gradients, parameters, names = self._places[method_name]
        outputs = self.model.run_method(method_name, inputs, clone_outputs=False)
        self._gradients = dict(zip(names, outputs[gradients:parameters], strict=True))
        self._parameters = dict(zip(names, outputs[parameters:], strict=True))
        return copy.deepcopy(outputs[:gradients])

    def named_gradients(self) -> dict[str, Any]:
        """The gradients of the last call of `forward_backward`, which the next one overwrites."""
        if self._gradients is None:
            raise RuntimeError("call forward_backward before named_gradients")
        return self._gradients

    def named_parameters(self) -> dict[str, Any]:
        """The parameters with gradients of the method that was called last: its own memory."""
        if self._parameters is None:
            raise RuntimeError("call forward_backward before named_parameters")
        return self._parameters


def _load_for_executorch_for_training(path: str) -> TrainingModule:
    return TrainingModule(_load_for_executorch(path))


def _load_for_executorch_for_training_from_buffer(buffer: bytes) -> TrainingModule:
    return TrainingModule(_load_for_executorch_from_buffer(buffer))
