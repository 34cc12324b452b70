/// A method in memory of its own, for tests.
#pragma once

#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/executor/testing_util/program_builder.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <vector>

namespace executorch::runtime::testing {

/// A loader over bytes that it owns.
class BytesLoader final : public DataLoader {
 public:
  explicit BytesLoader(std::vector<uint8_t> bytes) : bytes_(std::move(bytes)) {}
  Result<FreeableBuffer> load(size_t offset, size_t size, const SegmentInfo& info) const override {
    if (offset > bytes_.size() || size > bytes_.size() - offset) return Error::InvalidArgument;
    loads.push_back(info.segment_type);
    return FreeableBuffer(bytes_.data() + offset, size, nullptr);
  }
  Result<size_t> size() const override { return bytes_.size(); }

  /// What was read, in order.
  mutable std::vector<SegmentInfo::Type> loads;

 private:
  std::vector<uint8_t> bytes_;
};

inline Error load_error(std::vector<uint8_t> bytes) {
  runtime_init();
  BytesLoader loader(std::move(bytes));
  return Program::load(&loader).error();
}

class LoadedMethod {
 private:
  std::vector<Kernel> kernels_;
  std::vector<uint8_t> pool_;  // grows with the program
  std::vector<std::vector<uint8_t>> arenas_;
  std::vector<Span<uint8_t>> spans_;
  std::optional<HierarchicalAllocator> planned_;
  std::optional<MemoryAllocator> allocator_;
  std::optional<MemoryManager> memory_;

 public:
  // The method is destroyed before what it works in.
  BytesLoader loader;
  std::optional<Program> program;
  std::optional<Method> method;
  /// Of loading.
  Error error = Error::Ok;

  explicit LoadedMethod(std::vector<uint8_t> bytes, const char* name = "forward",
                        EventTracer* tracer = nullptr, const NamedDataMap* data = nullptr,
                        std::vector<Kernel> kernels = {})
      : kernels_(std::move(kernels)),
        pool_((1 << 16) + 32 * bytes.size()),
        loader(std::move(bytes)) {
    runtime_init();
    auto loaded = Program::load(&loader);
    error = loaded.error();
    if (!loaded.ok()) return;
    program.emplace(std::move(*loaded));
    load(name, tracer, data);
  }

  void load(const char* name, EventTracer* tracer = nullptr, const NamedDataMap* data = nullptr) {
    method.reset();
    auto meta = program->method_meta(name);
    error = meta.error();
    if (!meta.ok()) return;
    arenas_.clear();
    spans_.clear();
    for (size_t i = 0; i < meta->num_memory_planned_buffers(); ++i) {
      arenas_.emplace_back(static_cast<size_t>(*meta->memory_planned_buffer_size(i)));
    }
    for (auto& arena : arenas_) spans_.emplace_back(arena.data(), arena.size());
    planned_.emplace(Span<Span<uint8_t>>(spans_.data(), spans_.size()));
    allocator_.emplace(static_cast<uint32_t>(pool_.size()), pool_.data());
    memory_.emplace(&*allocator_, &*planned_);
    auto loaded = program->load_method(name, &*memory_, tracer, data, nullptr,
                                       {kernels_.data(), kernels_.size()});
    error = loaded.error();
    if (loaded.ok()) method.emplace(std::move(*loaded));
  }

  std::vector<float> output(size_t index = 0) const {
    const aten::Tensor& tensor = method->get_output(index).toTensor();
    const float* data = tensor.const_data_ptr<float>();
    return {data, data + tensor.numel()};
  }
};

/// A contiguous tensor over its own elements.
template <typename T>
class OwnedTensor {
 public:
  OwnedTensor(std::vector<int32_t> sizes, std::vector<T> data,
              aten::ScalarType dtype = aten::ScalarType::Float)
      : sizes_(std::move(sizes)),
        data_(std::move(data)),
        order_(sizes_.size()),
        strides_(sizes_.size()) {
    std::iota(order_.begin(), order_.end(), uint8_t{0});
    int32_t stride = 1;
    for (size_t i = sizes_.size(); i-- > 0; stride *= sizes_[i]) strides_[i] = stride;
    impl_.emplace(dtype, static_cast<ssize_t>(sizes_.size()), sizes_.data(), data_.data(),
                  order_.data(), strides_.data());
  }
  EValue value() { return EValue(aten::Tensor(&*impl_)); }
  std::vector<T>& data() { return data_; }

 private:
  std::vector<int32_t> sizes_;
  std::vector<T> data_;
  std::vector<uint8_t> order_;
  std::vector<int32_t> strides_;
  std::optional<aten::TensorImpl> impl_;
};

}  // namespace executorch::runtime::testing
