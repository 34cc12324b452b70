// What a payload, a shape or an argument may not do: write constants, take memory or time out of
// all proportion.
#include <executorch/backends/xnnpack/runtime/memory_plan.h>
#include <executorch/backends/xnnpack/runtime/payload_builder.h>
#include <executorch/backends/xnnpack/runtime/shared_arena.h>
#include <executorch/backends/xnnpack/runtime/work.h>
#include <executorch/runtime/backend/interface.h>

#include <chrono>

namespace executorch::backends::xnnpack::testing {
namespace {

/// y = abs(x), [2].
struct Absolute {
  PayloadBuilder b;
  Absolute() {
    const uint32_t x = b.input(Type::fp32, {2}), y = b.output(Type::fp32, {2});
    b.unary(Kind::XNNAbs, x, y);
  }
};

TEST(XnnpackArguments, ConstantsAreNotWritten) {
  Absolute a;
  Loaded loaded(a.b);
  const auto x = floats.make({2}, {-1, -2}), y = floats.make({2}, {5, 6});
  y.unsafeGetTensorImpl()->borrow_data(y.mutable_data_ptr(), 2, /*read_only=*/true);
  EXPECT_EQ(loaded.run({x, y}), Error::InvalidProgram);
  EXPECT_EQ(elements(y), (Floats{5, 6}));
}

TEST(XnnpackArguments, OutputsWithoutMemoryAreRefused) {
  Absolute a;
  Loaded loaded(a.b);
  const auto x = floats.make({2}, {-1, -2}), y = floats.make({2}, {5, 6});
  y.unsafeGetTensorImpl()->set_data(nullptr);
  EXPECT_EQ(loaded.run({x, y}), Error::InvalidState);
  x.unsafeGetTensorImpl()->set_data(nullptr);
  EXPECT_EQ(loaded.run({x, floats.zeros({2})}), Error::InvalidArgument);
}

TEST(XnnpackArguments, AreAsManyAsThePayloadSays) {
  Absolute a;
  Loaded loaded(a.b);
  const auto x = floats.ones({2}), y = floats.zeros({2});
  EXPECT_EQ(loaded.run({x}), Error::InvalidArgument);
  EXPECT_EQ(loaded.run({x, y, y}), Error::InvalidArgument);
  EXPECT_EQ(loaded.run({x, y}), Error::Ok);
}

TEST(XnnpackArguments, TheRuntimeIsToldWhichAreWritten) {
  Absolute a;
  const std::vector<uint8_t> bytes = a.b.build();
  runtime::runtime_init();
  auto* const backend = runtime::get_backend_class("XnnpackBackend");
  ASSERT_NE(backend, nullptr);
  runtime::MemoryAllocator allocator(0, nullptr);
  runtime::BackendInitContext context(&allocator);
  runtime::FreeableBuffer processed(bytes.data(), bytes.size(), nullptr);
  const auto handle = backend->init(context, &processed, {});
  ASSERT_TRUE(handle.ok());
  EXPECT_FALSE(backend->writes_argument(*handle, 0, 2));
  EXPECT_TRUE(backend->writes_argument(*handle, 1, 2));
  EXPECT_FALSE(backend->writes_argument(*handle, 2, 3));
  backend->destroy(*handle);
}

TEST(XnnpackPayload, CannotSayThatImagesLieAsPlanes) {
  constexpr uint32_t kAllFlags[] = {0, 1u << 31};
  for (const uint32_t flags : kAllFlags) {
    PayloadBuilder b;
    const uint32_t x = b.input(Type::fp32, {1, 2, 2, 3}), y = b.output(Type::fp32, {1, 1, 1, 3});
    b.node(Kind::XNNGlobalAvgPooling2d, fb::Create_XNNNode1x1(b.fbb, x, y, flags));
    EXPECT_EQ(Loaded(b).error, flags == 0 ? Error::Ok : Error::InvalidProgram);
  }
}

TEST(XnnpackWork, OfAPadThatFillsTerabytesIsRefused) {
  PayloadBuilder b;
  const auto list = [&b](const Dims& dims) { return b.fbb.CreateVector(dims); };
  const uint32_t x = b.input(Type::fp32, {1, 1}), y = b.output(Type::fp32, {1, 1}),
                 wide = b.inner(Type::fp32, {1 << 20, 1 << 20});
  b.node(Kind::XNNStaticConstantPad,
         fb::CreateXNNStaticConstantPad(b.fbb, list({0, 0}), list({(1 << 20) - 1, (1 << 20) - 1}),
                                        0, x, wide));
  b.node(Kind::XNNStaticSlice,
         fb::CreateXNNStaticSlice(b.fbb, 2, list({0, 0}), list({1, 1}), wide, y));
  Loaded loaded(b);
  ASSERT_EQ(loaded.error, Error::Ok);
  EXPECT_EQ(loaded.run({floats.ones({1, 1}), floats.zeros({1, 1})}), Error::NotSupported);
}

TEST(XnnpackWork, OfLargeProductsOfSmallOperandsIsRefused) {
  PayloadBuilder b;
  const auto list = [&b](const Dims& dims) { return b.fbb.CreateVector(dims); };
  constexpr uint32_t n = 1 << 13;
  const uint32_t x = b.input(Type::fp32, {1, 1}), y = b.output(Type::fp32, {1, 1}),
                 wide = b.inner(Type::fp32, {n, n}), square = b.inner(Type::fp32, {n, n});
  b.node(Kind::XNNStaticConstantPad,
         fb::CreateXNNStaticConstantPad(b.fbb, list({0, 0}), list({n - 1, n - 1}), 0, x, wide));
  b.binary(Kind::XNNBatchMatrixMultiply, wide, wide, square);
  b.node(Kind::XNNStaticSlice,
         fb::CreateXNNStaticSlice(b.fbb, 2, list({0, 0}), list({1, 1}), square, y));
  EXPECT_EQ(Loaded(b).run({floats.ones({1, 1}), floats.zeros({1, 1})}), Error::NotSupported);
}

TEST(XnnpackWork, OfWindowsLargerThanTheImageIsThatOfItsPixels) {
  PayloadBuilder b;
  const uint32_t x = b.input(Type::fp32, {1, 3, 3, 1}), y = b.output(Type::fp32, {1, 1, 1, 1});
  b.node(Kind::XNNMaxPooling2d, fb::Create_XNNPooling2D(b.fbb, 32768, 32765, 32765, 32768, 65536,
                                                        65536, 65536, 65536, 1, 1, x, y));
  const auto out = floats.zeros({1, 1, 1, 1});
  ASSERT_EQ(Loaded(b).run({floats.make({1, 3, 3, 1}, {1, 2, 3, 4, 9, 6, 7, 8, 5}), out}),
            Error::Ok);
  EXPECT_EQ(elements(out), Floats{9});
}

TEST(XnnpackWork, OfImagesWithoutColumnsIsNone) {
  // Each of the eight windows has half a thousand million rows of taps inside, and no column.
  constexpr int32_t rows = (1 << 30) - 3;
  for (const Kind kind : {Kind::XNNMaxPooling2d, Kind::XNNAvgPooling2d}) {
    PayloadBuilder b;
    const uint32_t x = b.input(Type::fp32, {2, rows, 4, 6}), y = b.output(Type::fp32, {2, 1, 8, 6});
    b.node(kind, fb::Create_XNNPooling2D(b.fbb, rows + 8, 2, rows + 8, 2, 1610612739, 1, 1073741823,
                                         1, 2, 1, x, y));
    Loaded loaded(b);
    ASSERT_EQ(loaded.error, Error::Ok);
    const auto out = floats.zeros({2, 1, 4, 6});
    const auto start = std::chrono::steady_clock::now();
    ASSERT_EQ(loaded.run({floats.zeros({2, rows, 0, 6}), out}), Error::Ok);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  }
}

TEST(XnnpackWork, CountsTheShapesOfTheCallNotTheLargest) {
  // The sum of all pairs has 2^40 elements for the largest input, which no call needs.
  PayloadBuilder b;
  constexpr uint32_t most = 1 << 20;
  const auto list = [&b](const Dims& dims) { return b.fbb.CreateVector(dims); };
  const uint32_t x = b.input(Type::fp32, {most, 1}), y = b.output(Type::fp32, {most, 1}),
                 transposed = b.inner(Type::fp32, {1, most}),
                 pairs = b.inner(Type::fp32, {most, most});
  b.node(Kind::XNNStaticTranspose,
         fb::CreateXNNStaticTranspose(b.fbb, 2, list({1, 0}), x, transposed));
  b.binary(Kind::XNNAdd, x, transposed, pairs);
  b.node(Kind::XNNStaticSlice,
         fb::CreateXNNStaticSlice(b.fbb, 2, list({0, 0}), list({0, 1}), pairs, y));
  Loaded loaded(b);
  ASSERT_EQ(loaded.error, Error::Ok);
  const auto out = floats.zeros({3, 1});
  ASSERT_EQ(loaded.run({floats.make({3, 1}, {1, 2, 4}), out}), Error::Ok);
  EXPECT_EQ(elements(out), (Floats{2, 3, 5}));
}

TEST(XnnpackWork, OfTransposedConvolutionsWithLargeStridesIsThatOfTheirPixels) {
  // What torch.nn.ConvTranspose2d(1, 1, 1, stride=65535, padding=32767) is written as.
  PayloadBuilder b;
  const uint32_t x = b.input(Type::fp32, {1, 2, 2, 1}), y = b.output(Type::fp32, {1, 2, 2, 1}),
                 w = b.constant(Type::fp32, {1, 1, 1, 1}, Floats{2});
  b.node(Kind::XNNConvTranspose2d,
         fb::Create_XNNNodeConv(b.fbb, 32767, 32767, 32767, 32767, 1, 1, 65535, 65535, 1, 1, 1, 1,
                                1, 0, 0, x, w, kNoId, y));
  const auto out = floats.ones({1, 2, 2, 1});
  ASSERT_EQ(Loaded(b).run({floats.make({1, 2, 2, 1}, {1, 2, 3, 4}), out}), Error::Ok);
  EXPECT_EQ(elements(out), (Floats{0, 0, 0, 0}));
}

TEST(XnnpackConstants, ThatManyValuesShareAreNotCopiedForEach) {
  // At an odd address all values need a copy; thousands of them name the same bytes.
  PayloadBuilder b;
  const uint32_t x = b.input(Type::fp32, {2}), y = b.output(Type::fp32, {2});
  b.unary(Kind::XNNAbs, x, y);
  const uint32_t entry = b.data_entry(Floats(1 << 16));
  for (int i = 0; i < 100; ++i) b.value(Type::fp32, {1 << 16}, {}, entry, kNoId, 0);
  const std::vector<uint8_t> bytes = b.build();
  std::vector<uint64_t> room(bytes.size() / 8 + 2);
  auto* const odd = reinterpret_cast<uint8_t*>(room.data()) + 1;
  std::memcpy(odd, bytes.data(), bytes.size());
  EXPECT_TRUE(read_graph(bytes.data(), bytes.size(), nullptr).ok());
  EXPECT_EQ(read_graph(odd, bytes.size(), nullptr).error(), Error::InvalidProgram);
}

TEST(XnnpackMemoryPlan, KeepsNoLayoutThatWasGivenUp) {
  PayloadBuilder b;
  const uint32_t x = b.input(Type::fp32, {64}), y = b.output(Type::fp32, {64}),
                 first = b.inner(Type::fp32, {64}), second = b.inner(Type::fp32, {64});
  b.binary(Kind::XNNAdd, x, x, first);
  b.binary(Kind::XNNMultiply, x, first, second);
  b.binary(Kind::XNNSubtract, first, second, y);
  const std::vector<uint8_t> bytes = b.build();
  const auto graph = read_graph(bytes.data(), bytes.size(), nullptr);
  ASSERT_TRUE(graph.ok());
  MemoryPlan plan(**graph);
  EXPECT_FALSE(plan.fit(**graph, 511));
  EXPECT_TRUE(plan.fit(**graph, 512));
  EXPECT_EQ(plan.arena_bytes(), 512);
  // Shorter inputs need no other layout, unless there is no memory for the old one.
  for (Value& value : (*graph)->values) value.shape[0] = 16;
  EXPECT_TRUE(plan.fit(**graph, 512));
  EXPECT_EQ(plan.arena_bytes(), 512);
  EXPECT_TRUE(plan.fit(**graph, 128));
  EXPECT_EQ(plan.arena_bytes(), 128);
}

TEST(XnnpackSharedArena, IsKeptOnlyWhileAUserNeedsOneAsLarge) {
  SharedArenaUser small;
  small.set_bytes(100);
  uint8_t* kept = nullptr;
  {
    const SharedArena arena(small);
    kept = arena.data();
    ASSERT_NE(kept, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(kept) % 64, 0u);
  }
  EXPECT_EQ(SharedArena(small).data(), kept);
  {
    SharedArenaUser large;
    large.set_bytes(1 << 20);
    EXPECT_NE(SharedArena(large).data(), nullptr);
    EXPECT_EQ(idle_arena_bytes(), size_t{1} << 20);
  }
  EXPECT_LE(idle_arena_bytes(), 100u);
}

TEST(XnnpackSharedArena, WithoutMemoryIsNull) {
  SharedArenaUser user;
  user.set_bytes(SIZE_MAX);
  EXPECT_EQ(SharedArena(user).data(), nullptr);
  user.set_bytes(SIZE_MAX / 2);
  EXPECT_EQ(SharedArena(user).data(), nullptr);
  user.set_bytes(1);
  EXPECT_NE(SharedArena(user).data(), nullptr);
}

}  // namespace
}  // namespace executorch::backends::xnnpack::testing
