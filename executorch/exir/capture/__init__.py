"""Options of the exporter, and `executorch.exir.capture(f, args)`, the predecessor of torch.export.

The public name `executorch.exir.capture` is this package and that function at once.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from executorch.exir.capture._capture import capture

        return capture(*args, **kwargs)


sys.modules[__name__].__class__ = _CallablePackage

_OPTIONS = ("CaptureConfig", "EdgeCompileConfig", "ExecutorchBackendConfig")
_FUNCTIONS = ("CallSpec", "_capture_legacy_do_not_use", "capture")
__all__ = [*_FUNCTIONS, *_OPTIONS]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _OPTIONS:
        from executorch.exir.capture import _config

        return getattr(_config, name)
    if name in _FUNCTIONS:
        from executorch.exir.capture import _capture

        return getattr(_capture, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
