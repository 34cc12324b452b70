#include <executorch/devtools/bundled_program/stored_tensor.h>
#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/platform/log.h>

#include <cinttypes>

namespace executorch::bundled_program::internal {

using runtime::Result;

Result<StoredTensor> StoredTensor::read(const bundled_program_flatbuffer::Tensor& tensor) {
  StoredTensor out{};
  out.type = static_cast<aten::ScalarType>(tensor.scalar_type());
  const auto size_of = [](const auto* items) { return items == nullptr ? 0u : items->size(); };
  const uint32_t rank = size_of(tensor.sizes());
  ET_CHECK_OR_RETURN_ERROR(runtime::isValid(out.type), InvalidArgument,
                           "bundled program: a tensor is of the unknown type %d",
                           static_cast<int>(out.type));
  ET_CHECK_OR_RETURN_ERROR(
      rank <= runtime::kTensorDimensionLimit && size_of(tensor.dim_order()) == rank,
      InvalidArgument,
      "bundled program: a tensor has %" PRIu32 " sizes and %" PRIu32
      " entries in its dim order; expected as many, and at most %zu",
      rank, size_of(tensor.dim_order()), runtime::kTensorDimensionLimit);
  out.rank = static_cast<ssize_t>(rank);
  for (uint32_t d = 0; d < rank; ++d) {
    out.sizes[d] = tensor.sizes()->Get(d);
    out.dim_order[d] = tensor.dim_order()->Get(d);
    ET_CHECK_OR_RETURN_ERROR(out.sizes[d] >= 0, InvalidArgument,
                             "bundled program: a tensor has the size %d", out.sizes[d]);
  }
  ET_ASSIGN_OR_RETURN(const ssize_t numel, aten::safe_numel(out.sizes, out.rank));
  ET_CHECK_OK_OR_RETURN_ERROR(
      runtime::dim_order_to_stride(out.sizes, out.dim_order, rank, out.strides));
  out.nbytes = size_of(tensor.data());
  const size_t element_bytes = runtime::elementSize(out.type);
  ET_CHECK_OR_RETURN_ERROR(
      out.nbytes % element_bytes == 0 && out.nbytes / element_bytes == static_cast<size_t>(numel),
      InvalidArgument, "bundled program: a tensor of %zd elements of %zu bytes has %zu bytes",
      numel, element_bytes, out.nbytes);
  out.data = out.nbytes == 0 ? nullptr : tensor.data()->data();
  return out;
}

}  // namespace executorch::bundled_program::internal
