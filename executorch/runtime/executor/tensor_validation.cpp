#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/exec_aten/util/tensor_dimension_limit.h>
#include <executorch/runtime/executor/plan_validation.h>

#include <c10/util/safe_numerics.h>

namespace executorch::runtime::internal {
namespace {

namespace fb = executorch_flatbuffer;

// A tensor under its name in messages.
struct TensorScope {
  const PlanScope& plan;
  const fb::Tensor& tensor;
  uint32_t index;
};

#define ET_TENSOR_CHECK(scope, cond, format, ...)                                         \
  ET_CHECK_OR_RETURN_ERROR(cond, InvalidProgram, "%s: value %" PRIu32 ": Tensor " format, \
                           (scope).plan.name, (scope).index, ##__VA_ARGS__)

Error validate_dim_order(const TensorScope& scope, uint32_t rank) {
  const auto* dim_order = scope.tensor.dim_order();
  ET_TENSOR_CHECK(scope, dim_order != nullptr && dim_order->size() == rank,
                  "of rank %" PRIu32 " has %" PRIu32 " entries in its dim order", rank,
                  size_of(dim_order));
  uint32_t seen = 0;
  for (uint32_t i = 0; i < rank; ++i) {
    const uint8_t dim = dim_order->Get(i);
    ET_TENSOR_CHECK(scope, dim < rank && (seen & (1u << dim)) == 0,
                    "of rank %" PRIu32 ": entry %" PRIu32
                    " of the dim order is %u; expected a permutation",
                    rank, i, unsigned{dim});
    seen |= 1u << dim;
  }
  return Error::Ok;
}

// Checks shape and dim order, and computes the tensor's size in bytes. Strides are 32 bits wide and
// count an extent of 0 as 1.
Error validate_shape(const TensorScope& scope, uint64_t& nbytes) {
  const auto* sizes = scope.tensor.sizes();
  ET_TENSOR_CHECK(scope, sizes != nullptr && sizes->size() <= kTensorDimensionLimit,
                  "has %" PRId64 " dimensions, expected 0 to %zu",
                  sizes == nullptr ? int64_t{-1} : int64_t{sizes->size()}, kTensorDimensionLimit);
  const uint32_t rank = sizes->size();
  ET_CHECK_OK_OR_RETURN_ERROR(validate_dim_order(scope, rank));
  uint64_t numel = 1;
  uint64_t stride = 1;
  bool fits = true;
  for (uint32_t i = rank; i-- > 0;) {
    const uint32_t dim = scope.tensor.dim_order()->Get(i);
    const int32_t size = sizes->Get(dim);
    ET_TENSOR_CHECK(scope, size >= 0, "has %" PRId32 " elements in dimension %" PRIu32, size, dim);
    const uint64_t extent = static_cast<uint64_t>(size);
    fits = fits && stride <= INT32_MAX;
    fits = !c10::mul_overflows(numel, extent, &numel) && fits;
    fits = !c10::mul_overflows(stride, extent == 0 ? uint64_t{1} : extent, &stride) && fits;
  }
  fits =
      !c10::mul_overflows(
          numel, elementSize(static_cast<aten::ScalarType>(scope.tensor.scalar_type())), &nbytes) &&
      nbytes <= INT64_MAX && stride <= INT64_MAX && fits;
  // The bound of an input may be "anything": there the actual shape counts, at run time.
  const bool open_input = scope.tensor.shape_dynamism() != fb::TensorShapeDynamism::STATIC &&
                          scope.tensor.allocation_info() == nullptr && !is_constant(scope.tensor);
  ET_TENSOR_CHECK(scope, fits || open_input, "of rank %" PRIu32 " is too large: sizes overflow",
                  rank);
  return Error::Ok;
}

Error validate_planned_memory(const TensorScope& scope, uint64_t nbytes) {
  const auto* allocation = scope.tensor.allocation_info();
  if (allocation == nullptr) return Error::Ok;
  const auto* sizes = scope.plan.plan.non_const_buffer_sizes();
  const uint32_t count = size_of(sizes);
  const uint32_t id = allocation->memory_id();
  ET_TENSOR_CHECK(scope, id > 0 && id < count,
                  "lies in planned memory %" PRIu32 "; ids are 1 to %" PRId64, id,
                  int64_t{count} - 1);
  const uint64_t offset =
      uint64_t{allocation->memory_offset_high()} << 32 | allocation->memory_offset_low();
  const auto room = static_cast<uint64_t>(sizes->Get(id));
  ET_TENSOR_CHECK(scope, offset <= room && nbytes <= room - offset,
                  "of %" PRIu64 " bytes at offset %" PRIu64 " leaves planned memory %" PRIu32
                  " of %" PRIu64 " bytes",
                  nbytes, offset, id, room);
  return Error::Ok;
}

// Checks the blob of `table` that holds the tensor's constant or initial bytes.
Error validate_blob(const TensorScope& scope, const fb::SubsegmentOffsets* table, uint64_t nbytes,
                    const char* what) {
  const uint32_t index = scope.tensor.data_buffer_idx();
  const uint32_t count = table == nullptr ? 0 : size_of(table->offsets());
  ET_TENSOR_CHECK(scope, index < count, "uses %s %" PRIu32 " of %" PRIu32, what, index, count);
  const uint64_t offset = table->offsets()->Get(index);
  const uint64_t room = scope.plan.program.segments()->Get(table->segment_index())->size();
  ET_TENSOR_CHECK(scope, nbytes <= room - offset,
                  "of %" PRIu64 " bytes: %s %" PRIu32 " at %" PRIu64
                  " leaves its segment of %" PRIu64 " bytes",
                  nbytes, what, index, offset, room);
  return Error::Ok;
}

// The deprecated form of constants: byte vectors in the flatbuffer.
Error validate_inline_constant(const TensorScope& scope, uint64_t nbytes) {
  const auto* buffers = scope.plan.program.constant_buffer();
  const uint32_t index = scope.tensor.data_buffer_idx();
  ET_TENSOR_CHECK(scope, index < buffers->size(), "uses constant %" PRIu32 " of %" PRIu32, index,
                  buffers->size());
  const auto* storage = buffers->Get(index)->storage();
  const uint64_t room = size_of(storage);
  ET_TENSOR_CHECK(scope, nbytes <= room,
                  "needs %" PRIu64 " bytes, constant %" PRIu32 " has %" PRIu64, nbytes, index,
                  room);
  return Error::Ok;
}

Error validate_data(const TensorScope& scope, uint64_t nbytes) {
  const auto* extra = scope.tensor.extra_tensor_info();
  if (extra != nullptr && extra->location() == fb::TensorDataLocation::EXTERNAL) {
    ET_TENSOR_CHECK(scope, extra->fully_qualified_name() != nullptr,
                    "has external data but no name to find it by");
    return Error::Ok;
  }
  if (scope.tensor.data_buffer_idx() == 0) return Error::Ok;
  const fb::Program& program = scope.plan.program;
  if (scope.tensor.allocation_info() != nullptr) {
    const auto* segments = program.mutable_data_segments();
    return validate_blob(scope, size_of(segments) == 0 ? nullptr : segments->Get(0), nbytes,
                         "initial state");
  }
  if (size_of(program.constant_buffer()) > 0) return validate_inline_constant(scope, nbytes);
  return validate_blob(scope, program.constant_segment(), nbytes, "constant");
}

}  // namespace

Error validate_tensor(const PlanScope& plan, uint32_t index) {
  const TensorScope scope{plan, *plan.tensor(index), index};
  const fb::Tensor& tensor = scope.tensor;
  ET_TENSOR_CHECK(scope, isValid(static_cast<aten::ScalarType>(tensor.scalar_type())),
                  "has the unknown element type %d", static_cast<int>(tensor.scalar_type()));
  ET_TENSOR_CHECK(scope, tensor.layout() == 0, "has layout %d; only 0, strided, is supported",
                  static_cast<int>(tensor.layout()));
  ET_TENSOR_CHECK(scope, tensor.storage_offset() == 0,
                  "has storage offset %" PRId32 "; only 0 is supported", tensor.storage_offset());
  ET_TENSOR_CHECK(scope,
                  tensor.shape_dynamism() >= fb::TensorShapeDynamism::MIN &&
                      tensor.shape_dynamism() <= fb::TensorShapeDynamism::MAX,
                  "has the unknown shape dynamism %d", static_cast<int>(tensor.shape_dynamism()));
  if (const auto* extra = tensor.extra_tensor_info()) {
    ET_TENSOR_CHECK(scope,
                    extra->location() >= fb::TensorDataLocation::MIN &&
                        extra->location() <= fb::TensorDataLocation::MAX &&
                        extra->device_type() >= fb::DeviceType::MIN &&
                        extra->device_type() <= fb::DeviceType::MAX,
                    "has location %d and device type %d; expected 0 or 1 each",
                    static_cast<int>(extra->location()), static_cast<int>(extra->device_type()));
  }
  uint64_t nbytes = 0;
  ET_CHECK_OK_OR_RETURN_ERROR(validate_shape(scope, nbytes));
  ET_CHECK_OK_OR_RETURN_ERROR(validate_planned_memory(scope, nbytes));
  return validate_data(scope, nbytes);
}

}  // namespace executorch::runtime::internal
