// Nodes that only move elements.
#include <executorch/backends/xnnpack/runtime/payload_builder.h>

namespace executorch::backends::xnnpack::testing {
namespace {

TEST(XnnpackMovement, MovesElementsOfAnyType) {
  Floats x(24);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const Dims dims = {2, 3, 4};
  const auto vec = [](PayloadBuilder& b, const Dims& list) { return b.fbb.CreateVector(list); };
  const auto transposed = run_unary(
      [&](auto& b, uint32_t i, uint32_t o) {
        b.node(Kind::XNNStaticTranspose,
               fb::CreateXNNStaticTranspose(b.fbb, 3, vec(b, {2, 0, 1}), i, o));
      },
      dims, x, {4, 2, 3});
  EXPECT_EQ(transposed[1 * 6 + 1 * 3 + 2], x[1 * 12 + 2 * 4 + 1]);
  const auto shaped = run_unary(
      [&](auto& b, uint32_t i, uint32_t o) {
        b.node(Kind::XNNStaticReshape, fb::CreateXNNStaticReshape(b.fbb, 2, vec(b, {4, 0}), i, o));
      },
      dims, x, {4, 6});
  EXPECT_EQ(shaped, x);
  const auto sliced = run_unary(
      [&](auto& b, uint32_t i, uint32_t o) {
        b.node(Kind::XNNStaticSlice,
               fb::CreateXNNStaticSlice(b.fbb, 3, vec(b, {1, 0, 1}), vec(b, {1, 0, 2}), i, o));
      },
      dims, x, {1, 3, 2});
  EXPECT_EQ(sliced, (Floats{13, 14, 17, 18, 21, 22}));
  const auto padded = run_unary(
      [&](auto& b, uint32_t i, uint32_t o) {
        b.node(Kind::XNNStaticConstantPad,
               fb::CreateXNNStaticConstantPad(b.fbb, vec(b, {0, 1}), vec(b, {1, 2}), 9, i, o));
      },
      {1, 2}, {1, 2}, {2, 5});
  EXPECT_EQ(padded, (Floats{9, 1, 2, 9, 9, 9, 9, 9, 9, 9}));
}

TEST(XnnpackMovement, ConcatenatesAlongAnyAxisAndConvertsWhereTheTypeDiffers) {
  for (const bool from_the_end : {false, true}) {
    PayloadBuilder b;
    const uint32_t x = b.input(Type::qint8, {2, 1}, {0.5f, 1}), w = b.input(Type::fp32, {2, 2}),
                   y = b.output(Type::qint8, {2, 3}, {0.25f, 0});
    b.node(Kind::XNNConcatenate2,
           fb::Create_XNNCat(b.fbb, from_the_end ? ~0u : 1, x, w, kNoId, kNoId, y));
    Tensors<ScalarType::Char> bytes;
    const auto out = bytes.zeros({2, 3});
    Loaded loaded(b);
    ASSERT_EQ(loaded.error, Error::Ok);
    ASSERT_EQ(loaded.run({bytes.make({2, 1}, {3, 5}), floats.make({2, 2}, {1, 2, 3, 4}), out}),
              Error::Ok);
    EXPECT_EQ(elements<int8_t>(out), (std::vector<int8_t>{4, 4, 8, 8, 12, 16}));
  }
}

}  // namespace
}  // namespace executorch::backends::xnnpack::testing
