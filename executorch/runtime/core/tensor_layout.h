#pragma once

#include <cstddef>
#include <cstdint>

#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>

namespace executorch::ET_RUNTIME_NAMESPACE {

/// The shape of a dense tensor without its bytes. The spans are borrowed.
class TensorLayout final {
 public:
  TensorLayout() = delete;

  /// InvalidArgument when a size is negative, `dim_order` is no permutation of as many dimensions,
  /// the type is unknown, or the bytes exceed the address space.
  static runtime::Result<const TensorLayout> create(Span<const int32_t> sizes,
                                                    Span<const uint8_t> dim_order,
                                                    aten::ScalarType scalar_type);

  Span<const int32_t> sizes() const { return sizes_; }
  Span<const uint8_t> dim_order() const { return dim_order_; }
  aten::ScalarType scalar_type() const { return scalar_type_; }
  /// Bytes of all elements.
  size_t nbytes() const { return nbytes_; }

 private:
  TensorLayout(Span<const int32_t> sizes, Span<const uint8_t> dim_order,
               aten::ScalarType scalar_type, size_t nbytes)
      : sizes_(sizes), dim_order_(dim_order), scalar_type_(scalar_type), nbytes_(nbytes) {}

  Span<const int32_t> sizes_;
  Span<const uint8_t> dim_order_;
  aten::ScalarType scalar_type_;
  size_t nbytes_;
};

}  // namespace executorch::ET_RUNTIME_NAMESPACE
