"""The C++ runtime, as thin as it gets; `executorch.runtime` is the friendlier face.

Inputs are one flat sequence of anything with `__dlpack__` (torch, NumPy, ...), Python numbers,
strings and None. Tensor results are torch tensors when torch is imported in the process, else
NumPy arrays (bfloat16 widened to float32), else bare `__dlpack__` objects; they are copies unless
clone_outputs=False. Failures raise RuntimeError carrying the runtime's messages.
"""

from __future__ import annotations

try:
    from executorch.extension.pybindings._C import (
        BundledModule,
        ExecuTorchMethod,
        ExecuTorchModule,
        ExecuTorchProgram,
        MethodMeta,
        TensorInfo,
        Verification,
        _create_profile_block,
        _dump_profile_results,
        _get_operator_names,
        _get_registered_backend_names,
        _is_available,
        _load_bundled_program_from_buffer,
        _load_for_executorch,
        _load_for_executorch_from_buffer,
        _load_for_executorch_from_bundled_program,
        _load_program,
        _load_program_from_buffer,
        _reset_profile_results,
        _threadpool_get_thread_count,
        _unsafe_reset_threadpool,
    )
except ImportError as e:
    raise ImportError(
        "the native runtime executorch.extension.pybindings._C is missing or does not fit this "
        f"Python ({e}); build the target portable_lib with -DEXECUTORCH_BUILD_PYBIND=ON"
    ) from e

__all__ = [
    "BundledModule",
    "ExecuTorchMethod",
    "ExecuTorchModule",
    "ExecuTorchProgram",
    "MethodMeta",
    "TensorInfo",
    "Verification",
    "_create_profile_block",
    "_dump_profile_results",
    "_get_operator_names",
    "_get_registered_backend_names",
    "_is_available",
    "_load_bundled_program_from_buffer",
    "_load_for_executorch",
    "_load_for_executorch_from_buffer",
    "_load_for_executorch_from_bundled_program",
    "_load_program",
    "_load_program_from_buffer",
    "_reset_profile_results",
    "_threadpool_get_thread_count",
    "_unsafe_reset_threadpool",
]
