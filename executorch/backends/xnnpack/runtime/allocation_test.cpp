// Every allocation of loading and running a payload fails once: errors come back, nothing else.
#include <executorch/backends/xnnpack/runtime/payload_builder.h>
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/platform/platform.h>

#include <cstdlib>
#include <new>

namespace {

/// Allocations until one fails; none does below 0.
int64_t countdown = -1;

bool fails() {
  return countdown >= 0 && countdown-- == 0;
}
void* allocate(size_t size) {
  return fails() ? nullptr : std::malloc(size == 0 ? 1 : size);
}
void* allocate_aligned(size_t size, std::align_val_t alignment) {
  const auto line = static_cast<size_t>(alignment);
  constexpr size_t kMost = size_t{1} << 40;  // AddressSanitizer ends the process for more
  return fails() || size > kMost ? nullptr : std::aligned_alloc(line, (size + line) / line * line);
}
void* allocate_or_throw(size_t size) {
  void* const memory = allocate(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t size) {
  return allocate_or_throw(size);
}
void* operator new[](size_t size) {
  return allocate_or_throw(size);
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return allocate(size);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return allocate(size);
}
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_aligned(size, alignment);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace executorch::backends::xnnpack::testing {
namespace {

/// A layer quantized by row, an image of integers that is pooled, and constants of each kind.
struct Model {
  PayloadBuilder b;
  std::vector<uint8_t> bytes;

  Model() {
    const Quantization q{0.1f, 1};
    const uint32_t x = b.input(Type::fp16, {1, 4, 4, 4}), y = b.output(Type::fp32, {1, 2, 2, 3}),
                   in = b.inner(Type::qint8, {1, 4, 4, 4}, q),
                   w = b.constant(Type::qint8, {4, 3, 3, 4}, std::vector<int8_t>(144, 3)),
                   conv = b.inner(Type::qint8, {1, 4, 4, 4}, q),
                   own = b.constant(Type::qcint8, {1, 3, 3, 4}, std::vector<int8_t>(36, -2),
                                    {.scales = Floats(4, 0.1f), .channel_dim = 3}),
                   depth = b.inner(Type::qint8, {1, 4, 4, 4}, q),
                   pooled = b.inner(Type::qint8, {1, 2, 2, 4}, q),
                   halves = b.inner(Type::fp16, {1, 2, 2, 4}),
                   rows = b.inner(Type::qdint8, {1, 2, 2, 4}),
                   matrix = b.constant(Type::qcint8, {3, 4}, std::vector<int8_t>(12, 5),
                                       {.scales = Floats(3, 0.1f)});
    b.unary(Kind::XNNConvert, x, in);
    b.node(Kind::XNNConv2d, fb::Create_XNNNodeConv(b.fbb, 1, 1, 1, 1, 3, 3, 1, 1, 1, 1, 4, 4, 1, 0,
                                                   0, in, w, kNoId, conv));
    b.node(Kind::XNNDepthwiseConv2d, fb::Create_XNNNodeConv(b.fbb, 1, 1, 1, 1, 3, 3, 1, 1, 1, 1, 1,
                                                            1, 4, 0, 0, conv, own, kNoId, depth));
    b.node(Kind::XNNMaxPooling2d,
           fb::Create_XNNPooling2D(b.fbb, 0, 0, 0, 0, 2, 2, 2, 2, 1, 1, depth, pooled));
    b.unary(Kind::XNNConvert, pooled, halves);
    b.unary(Kind::XNNConvert, halves, rows);
    b.node(Kind::XNNFullyConnected, fb::CreateXNNFullyConnected(b.fbb, rows, matrix, kNoId, y));
    bytes = b.build();
  }
};

/// Memory of a call that fails with the rest.
class FailingAllocator final : public runtime::MemoryAllocator {
 public:
  FailingAllocator() : MemoryAllocator(0, nullptr) {}
  ~FailingAllocator() override { reset(); }
  void* allocate(size_t size, size_t alignment) override {
    void* const memory = allocate_aligned(size, std::align_val_t{std::max<size_t>(alignment, 16)});
    if (memory != nullptr && n_ < kMost) taken_[n_++] = memory;
    return memory;
  }
  void reset() override {
    while (n_ > 0) std::free(taken_[--n_]);
  }

 private:
  static constexpr size_t kMost = 64;
  void* taken_[kMost];
  size_t n_ = 0;
};

/// Loads and runs it with the n-th allocation failing; whether there were fewer.
Error try_once(const Model& model, int64_t n, runtime::Span<runtime::EValue*> args) {
  auto* const backend = runtime::get_backend_class("XnnpackBackend");
  FailingAllocator allocator;
  runtime::BackendInitContext context(&allocator);
  runtime::FreeableBuffer processed(model.bytes.data(), model.bytes.size(), nullptr);
  countdown = n;
  const auto handle = backend->init(context, &processed, {});
  Error error = handle.error();
  for (int call = 0; error == Error::Ok && call < 2; ++call) {
    runtime::BackendExecutionContext call_context(nullptr, &allocator);
    error = backend->execute(call_context, *handle, args);
    allocator.reset();
  }
  if (handle.ok()) backend->destroy(*handle);
  countdown = -1;
  return error;
}

/// Begins with a call in which no allocation fails, and its result.
class XnnpackAllocations : public ::testing::Test {
 protected:
  void SetUp() override {
    runtime::runtime_init();
    ASSERT_EQ(try_once(model, -1, args), Error::Ok);
    expected = elements(y);
  }

  const Model model;
  const aten::Tensor x = halves.ones({1, 4, 4, 4});
  const aten::Tensor y = floats.zeros({1, 2, 2, 3});
  runtime::EValue values[2] = {x, y};
  runtime::EValue* pointers[2] = {&values[0], &values[1]};
  const runtime::Span<runtime::EValue*> args{pointers, 2};
  Floats expected;
};

TEST_F(XnnpackAllocations, EachThatFailsIsAnErrorAndTheNextCallRuns) {
  runtime::PalImpl quiet = *runtime::get_pal_impl();
  const runtime::PalImpl loud = quiet;
  quiet.emit_log_message = [](et_timestamp_t, et_pal_log_level_t, const char*, const char*, size_t,
                              const char*, size_t) {};
  runtime::register_pal(quiet);
  int64_t n = 0;
  for (Error error = Error::Internal; error != Error::Ok; ++n) {
    std::fill_n(y.mutable_data_ptr<float>(), 12, 0.0f);
    error = try_once(model, n, args);
    ASSERT_TRUE(error == Error::Ok || error == Error::MemoryAllocationFailed) << "allocation " << n;
    ASSERT_LT(n, 10'000);
  }
  runtime::register_pal(loud);
  EXPECT_GT(n, 30);
  EXPECT_EQ(elements(y), expected);
}

TEST_F(XnnpackAllocations, ACallAfterOneThatFailedGivesTheSame) {
  auto* const backend = runtime::get_backend_class("XnnpackBackend");
  FailingAllocator allocator;
  runtime::BackendInitContext context(&allocator);
  runtime::FreeableBuffer processed(model.bytes.data(), model.bytes.size(), nullptr);
  const auto handle = backend->init(context, &processed, {});
  ASSERT_TRUE(handle.ok());
  Error error = Error::Internal;
  for (int64_t n = 0; error != Error::Ok; ++n) {
    ASSERT_LT(n, 10'000);
    runtime::BackendExecutionContext call_context(nullptr, &allocator);
    countdown = n;
    error = backend->execute(call_context, *handle, args);
    countdown = -1;
    allocator.reset();
    ASSERT_TRUE(error == Error::Ok || error == Error::MemoryAllocationFailed) << "allocation " << n;
  }
  EXPECT_EQ(elements(y), expected);
  backend->destroy(*handle);
}

}  // namespace
}  // namespace executorch::backends::xnnpack::testing
