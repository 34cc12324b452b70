/// Converting runs of elements between storage types and the types kernels compute in.
/// Strides are in elements. Conversions are those of PyTorch: to Bool is != 0, to a narrower
/// integer wraps, Half and BFloat16 round to nearest even; a float out of int64_t's range gives
/// its lowest value.
#pragma once

#include <executorch/kernels/portable/internal/dtype.h>

#include <cstdint>

namespace torch::executor::native::internal {

/// Loads dst[i] = src[i * stride] for i in [0, n). C is int64_t, int32_t, float, double or bool.
template <class C>
void load(const void* src, ScalarType type, int64_t stride, int64_t n, C* dst);

/// dst[i * stride] = src[i] for i in [0, n).
template <class C>
void store(const C* src, int64_t n, void* dst, ScalarType type, int64_t stride);

/// dst[i * dst_stride] = src[i * src_stride], for any two types that are real or complex. The
/// imaginary part of a real number is 0; that of a complex number is dropped if dst is real.
void convert(const void* src, ScalarType src_type, int64_t src_stride, void* dst,
             ScalarType dst_type, int64_t dst_stride, int64_t n);

/// One element.
template <class C>
C load_one(const void* src, ScalarType type) {
  C value;
  load(src, type, 1, 1, &value);
  return value;
}
template <class C>
void store_one(C value, void* dst, ScalarType type) {
  store(&value, 1, dst, type, 1);
}

/// The element of a tensor that lies `offset` elements behind its first one.
template <class C>
C load_at(const Tensor& t, int64_t offset) {
  const char* data = static_cast<const char*>(t.const_data_ptr());
  return load_one<C>(data + offset * t.element_size(), t.scalar_type());
}
template <class C>
void store_at(C value, const Tensor& t, int64_t offset) {
  char* data = static_cast<char*>(t.mutable_data_ptr());
  store_one(value, data + offset * t.element_size(), t.scalar_type());
}

/// Replaces each values[i] by the value that it has after being stored as `type` and loaded again.
template <class C>
void round_through(ScalarType type, C* values, int64_t n);

}  // namespace torch::executor::native::internal
