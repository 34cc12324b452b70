#include <executorch/extension/runner_util/inputs.h>
#include <executorch/runtime/core/allocation_failure.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <cstring>

namespace executorch::extension {

using aten::Tensor;
using aten::TensorImpl;
using runtime::Error;
using runtime::Result;
using runtime::Span;
using runtime::Tag;

namespace internal {

Error fill_ones(Tensor tensor) {
  switch (tensor.scalar_type()) {
#define FILL_ONES(ctype, name)                                                               \
  case aten::ScalarType::name:                                                               \
    std::fill_n(tensor.mutable_data_ptr<ctype>(), tensor.numel(), static_cast<ctype>(1.0f)); \
    return Error::Ok;
    ET_FORALL_REALHBBF16_TYPES(FILL_ONES)
#undef FILL_ONES
    case aten::ScalarType::UInt16:
      std::fill_n(tensor.mutable_data_ptr<uint16_t>(), tensor.numel(), uint16_t(1));
      return Error::Ok;
    case aten::ScalarType::UInt32:
      std::fill_n(tensor.mutable_data_ptr<uint32_t>(), tensor.numel(), uint32_t(1));
      return Error::Ok;
    case aten::ScalarType::UInt64:
      std::fill_n(tensor.mutable_data_ptr<uint64_t>(), tensor.numel(), uint64_t(1));
      return Error::Ok;
    default:
      ET_LOG(Error, "inputs: cannot fill a tensor of type %s with ones",
             runtime::toString(tensor.scalar_type()));
      return Error::InvalidArgument;
  }
}

}  // namespace internal

namespace {

/// The list of buffers grows as inputs are made; BufferCleanup frees what is there so far.
class InputBuffers {
 public:
  explicit InputBuffers(size_t capacity)
      : list_(static_cast<void**>(std::calloc(std::max<size_t>(capacity, 1), sizeof(void*)))) {}
  ~InputBuffers() { const BufferCleanup cleanup(take()); }

  bool ok() const { return list_ != nullptr; }

  void* add(size_t size) {
    void* const buffer = std::malloc(std::max<size_t>(size, 1));
    if (buffer != nullptr) list_[count_++] = buffer;
    return buffer;
  }

  void* operator[](size_t i) const { return list_[i]; }

  Span<void*> take() { return {std::exchange(list_, nullptr), std::exchange(count_, 0)}; }

 private:
  void** list_;
  size_t count_ = 0;
};

struct TensorInput {
  size_t index;
  TensorInfo info;
};

Result<std::vector<TensorInput>> tensor_inputs(const Method& method,
                                               const PrepareInputTensorsOptions& options) {
  const auto meta = method.method_meta();
  ET_CHECK_OR_RETURN_ERROR(meta.num_inputs() <= options.max_inputs, InvalidProgram,
                           "inputs: the method has %zu inputs, at most %zu are allowed",
                           meta.num_inputs(), options.max_inputs);
  return runtime::catch_allocation_failure("inputs", [&]() -> Result<std::vector<TensorInput>> {
    std::vector<TensorInput> inputs;
    size_t total = 0;
    for (size_t i = 0; i < meta.num_inputs(); ++i) {
      ET_ASSIGN_OR_RETURN(const Tag tag, meta.input_tag(i));
      if (tag != Tag::Tensor) continue;
      ET_ASSIGN_OR_RETURN(const TensorInfo info, meta.input_tensor_meta(i));
      ET_CHECK_OR_RETURN_ERROR(info.nbytes() <= options.max_total_allocation_size - total,
                               InvalidProgram,
                               "inputs: input %zu needs %zu bytes after %zu for others, at most "
                               "%zu are allowed",
                               i, info.nbytes(), total, options.max_total_allocation_size);
      total += info.nbytes();
      inputs.push_back({i, info});
    }
    return inputs;
  });
}

/// f of the input as a tensor at `data`.
template <class F>
Error with_tensor(const TensorInput& input, void* data, const F& f) {
  const auto sizes = input.info.sizes();
  const auto order = input.info.dim_order();
  TensorImpl impl(input.info.scalar_type(), static_cast<ssize_t>(sizes.size()),
                  const_cast<TensorImpl::SizesType*>(sizes.data()), data,
                  const_cast<TensorImpl::DimOrderType*>(order.data()));
  return f(Tensor(&impl));
}

}  // namespace

Result<BufferCleanup> prepare_input_tensors(
    Method& method, PrepareInputTensorsOptions options,
    const std::vector<std::pair<char*, size_t>>& input_buffers) {
  ET_ASSIGN_OR_RETURN(const auto inputs, tensor_inputs(method, options));
  const bool given = !input_buffers.empty();
  ET_CHECK_OR_RETURN_ERROR(!given || input_buffers.size() == inputs.size(), InvalidArgument,
                           "inputs: %zu buffers for %zu tensor inputs", input_buffers.size(),
                           inputs.size());
  InputBuffers buffers(inputs.size());
  ET_CHECK_OR_RETURN_ERROR(buffers.ok(), MemoryAllocationFailed, "inputs: no memory");
  // The method gets none before all are ready: after an error they are freed.
  for (size_t i = 0; i < inputs.size(); ++i) {
    const size_t size = inputs[i].info.nbytes();
    ET_CHECK_OR_RETURN_ERROR(!given || input_buffers[i].second == size, InvalidArgument,
                             "inputs: input %zu has %zu bytes, the buffer for it %zu",
                             inputs[i].index, size, input_buffers[i].second);
    ET_CHECK_OR_RETURN_ERROR(!given || size == 0 || input_buffers[i].first != nullptr,
                             InvalidArgument, "inputs: the buffer for input %zu is null",
                             inputs[i].index);
    void* const data = buffers.add(size);
    ET_CHECK_OR_RETURN_ERROR(data != nullptr, MemoryAllocationFailed,
                             "inputs: no memory for the %zu bytes of input %zu", size,
                             inputs[i].index);
    if (!given) {
      ET_CHECK_OK_OR_RETURN_ERROR(with_tensor(inputs[i], data, internal::fill_ones));
    } else if (size != 0) {
      std::memcpy(data, input_buffers[i].first, size);
    }
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto set = [&](const Tensor& tensor) {
      return method.set_input(tensor, inputs[i].index);
    };
    ET_CHECK_OK_OR_RETURN_ERROR(with_tensor(inputs[i], buffers[i], set));
  }
  return BufferCleanup(buffers.take());
}

}  // namespace executorch::extension
