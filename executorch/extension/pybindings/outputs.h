#pragma once

#include <executorch/runtime/core/evalue.h>

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <variant>
#include <vector>

namespace executorch::extension::pybindings {

struct AlignedDelete {
  void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{64}); }
};
using AlignedBytes = std::unique_ptr<std::byte[], AlignedDelete>;

/// Uninitialised memory at a 64-byte boundary; `size` may be 0.
inline AlignedBytes aligned_bytes(size_t size) {
  // operator new rounds the size up to the alignment without checking for overflow.
  if (size > PTRDIFF_MAX) throw std::bad_alloc();
  return AlignedBytes(static_cast<std::byte*>(::operator new[](size, std::align_val_t{64})));
}

/// A tensor result that has left the runtime and is not yet a Python object.
struct TensorOutput {
  aten::ScalarType type;
  std::vector<size_t> sizes;
  std::vector<int64_t> strides;  // in elements
  std::byte* data;
  AlignedBytes owned;  // null when `data` is the method's memory
};

/// One result of a method. Independent of the runtime, unless it aliases the method's memory.
struct Output {
  std::variant<std::monostate, bool, int64_t, double, std::string, TensorOutput,
               std::vector<Output>>
      value;
};

/// Converts a value of the runtime. With `clone`, tensors are copied; tensors of constants always
/// are. Needs no GIL. Throws std::runtime_error for a list with an unset element and for a tensor
/// without memory.
Output detach(const runtime::EValue& value, bool clone);

/// The Python object of a result. Tensors become torch.Tensor when torch is imported in this
/// process, else numpy.ndarray, else an object with __dlpack__. NumPy has no bfloat16: such a
/// result is widened, exactly, to float32 there; float8 stays a __dlpack__ object.
/// `owner` is what keeps aliased memory alive.
nanobind::object to_python(Output output, nanobind::handle owner);

}  // namespace executorch::extension::pybindings
