/// Reads operands of normalizations, of any type and layout, as runs of the compute type C.
#pragma once

#include <executorch/kernels/portable/internal/loop.h>

#include <cstdint>
#include <optional>

namespace torch::executor::native::internal {

/// A contiguous vector of any type, read in runs of C. If it is absent, all elements are
/// `otherwise`.
template <class C>
class Vector {
 public:
  Vector(const std::optional<Tensor>& t, C otherwise) : otherwise_(otherwise) {
    if (t.has_value()) *this = Vector(*t);
  }
  explicit Vector(const Tensor& t)
      : data_(static_cast<const char*>(t.const_data_ptr())), type_(t.scalar_type()) {}
  explicit Vector(const C* data)
      : data_(reinterpret_cast<const char*>(data)), type_(scalar_type_of(kComputeOf<C>)) {}

  const C* read(int64_t i, int64_t n, C* chunk) const {
    if (data_ == nullptr) {
      for (int64_t j = 0; j < n; ++j) chunk[j] = otherwise_;
      return chunk;
    }
    if (type_ == scalar_type_of(kComputeOf<C>)) return reinterpret_cast<const C*>(data_) + i;
    load(data_ + i * static_cast<int64_t>(elementSize(type_)), type_, 1, n, chunk);
    return chunk;
  }
  C at(int64_t i) const {
    C value;
    return *read(i, 1, &value);
  }

 private:
  const char* data_ = nullptr;
  ScalarType type_ = ScalarType::Undefined;
  C otherwise_ = 0;
};

/// The elements of out (operand 0) and in (operand 1) in logical order, as runs of C.
template <class C>
struct Rows {
  Loop loop;
  const Tensor& in;
  const Tensor& out;
  bool in_direct, out_direct;

  Rows(const Tensor& in_tensor, const Tensor& out_tensor)
      : loop(out_tensor.sizes()), in(in_tensor), out(out_tensor) {
    loop.add(out).add(in).collapse();
    in_direct = loop.is_dense(1) && in.scalar_type() == scalar_type_of(kComputeOf<C>);
    out_direct = loop.is_dense(0) && out.scalar_type() == scalar_type_of(kComputeOf<C>);
  }
  const C* read(int64_t pos, int64_t n, C* chunk) const {
    if (in_direct) return static_cast<const C*>(in.const_data_ptr()) + pos;
    gather(loop, 1, in.const_data_ptr(), in.scalar_type(), pos, n, chunk);
    return chunk;
  }
  C* room(int64_t pos, C* chunk) const {
    return out_direct ? static_cast<C*>(out.mutable_data_ptr()) + pos : chunk;
  }
  void write(int64_t pos, int64_t n, const C* chunk) const {
    if (!out_direct) scatter(loop, 0, out.mutable_data_ptr(), out.scalar_type(), pos, n, chunk);
  }
};

}  // namespace torch::executor::native::internal
