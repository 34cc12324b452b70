// A slice of what tests/fuzz does for longer: damaged payloads are refused, or run within memory.
#include <executorch/backends/xnnpack/runtime/operation.h>
#include <executorch/backends/xnnpack/runtime/payload_builder.h>
#include <executorch/backends/xnnpack/runtime/payload_mutation.h>
#include <executorch/backends/xnnpack/runtime/payload_parts.h>
#include <executorch/backends/xnnpack/runtime/run_on_anything.h>
#include <executorch/runtime/platform/platform.h>

#include <set>

namespace executorch::backends::xnnpack::testing {
namespace {

constexpr int64_t kMaxBytes = 1 << 16;

/// An image in integers: convolutions, a pooling, a join, and back to floats.
Bytes integer_image() {
  PayloadBuilder b;
  const Quantization q{0.1f, 1};
  const uint32_t x = b.input(Type::fp32, {1, 4, 4, 4}), y = b.output(Type::fp32, {1, 2, 2, 8}),
                 in = b.inner(Type::qint8, {1, 4, 4, 4}, q),
                 w = b.constant(Type::qcint8, {4, 3, 3, 4}, std::vector<int8_t>(144, 3),
                                {.scales = Floats(4, 0.1f)}),
                 bias = b.constant(Type::qcint32, {4}, std::vector<int32_t>(4, 9),
                                   {.scales = Floats(4, 0.01f)}),
                 conv = b.inner(Type::qint8, {1, 4, 4, 4}, q),
                 own = b.constant(Type::qcint8, {1, 3, 3, 4}, std::vector<int8_t>(36, -2),
                                  {.scales = Floats(4, 0.1f), .channel_dim = 3}),
                 depth = b.inner(Type::qint8, {1, 4, 4, 4}, q),
                 both = b.inner(Type::qint8, {1, 4, 4, 8}, q),
                 pooled = b.inner(Type::qint8, {1, 2, 2, 8}, q);
  b.unary(Kind::XNNConvert, x, in);
  b.node(Kind::XNNConv2d, fb::Create_XNNNodeConv(b.fbb, 1, 1, 1, 1, 3, 3, 1, 1, 1, 1, 4, 4, 1, 0, 0,
                                                 in, w, bias, conv));
  b.node(Kind::XNNDepthwiseConv2d, fb::Create_XNNNodeConv(b.fbb, 1, 1, 1, 1, 3, 3, 1, 1, 1, 1, 1, 1,
                                                          4, 0, 0, conv, own, kNoId, depth));
  b.node(Kind::XNNConcatenate2, fb::Create_XNNCat(b.fbb, 3, conv, depth, kNoId, kNoId, both));
  b.node(Kind::XNNMaxPooling2d,
         fb::Create_XNNPooling2D(b.fbb, 0, 0, 0, 0, 2, 2, 2, 2, 1, 1, both, pooled));
  b.unary(Kind::XNNConvert, pooled, y);
  return b.build();
}

/// A layer quantized per row, with weights of 4 bits in groups, and attention.
Bytes rows_and_groups() {
  PayloadBuilder b;
  const auto list = [&b](const Dims& dims) { return b.fbb.CreateVector(dims); };
  const uint32_t x = b.input(Type::fp32, {2, 3, 64}), z = b.input(Type::fp32, {2, 32, 3}),
                 y = b.output(Type::fp32, {2, 3, 3}), rows = b.inner(Type::qdint8, {2, 3, 64}),
                 w = b.constant(Type::qbint4, {32, 64}, std::vector<uint8_t>(1024, 0x5A),
                                {.scales = Floats(64, 0.5f), .group_size = 32}),
                 bias = b.constant(Type::fp32, {32}, numbers(32)),
                 h = b.inner(Type::fp32, {2, 3, 32}), part = b.inner(Type::fp32, {2, 2, 32}),
                 long_ = b.inner(Type::fp32, {2, 3, 32}), scores = b.inner(Type::fp32, {2, 3, 3}),
                 sum = b.inner(Type::fp32, {2, 3, 3}), most = b.inner(Type::fp32, {2, 3, 3}),
                 transposed = b.inner(Type::fp32, {2, 3, 3}), half = b.inner(Type::fp16, {2, 3, 3});
  b.unary(Kind::XNNConvert, x, rows);
  b.node(Kind::XNNFullyConnected, fb::CreateXNNFullyConnected(b.fbb, rows, w, bias, h), -3, 3);
  b.node(Kind::XNNStaticSlice,
         fb::CreateXNNStaticSlice(b.fbb, 3, list({0, 1, 0}), list({0, 2, 0}), h, part));
  b.node(Kind::XNNStaticConstantPad,
         fb::CreateXNNStaticConstantPad(b.fbb, list({0, 1, 0}), list({0, 0, 0}), 1, part, long_));
  b.binary(Kind::XNNBatchMatrixMultiply, long_, z, scores);
  b.binary(Kind::XNNAdd, scores, scores, sum, -1, 1);
  b.unary(Kind::XNNSoftmax, sum, most);
  b.node(Kind::XNNStaticTranspose,
         fb::CreateXNNStaticTranspose(b.fbb, 3, list({0, 2, 1}), most, transposed));
  b.unary(Kind::XNNConvert, transposed, half);
  b.node(Kind::XNNLeakyReLU, fb::CreateXNNLeakyReLU(b.fbb, 0.5f, half, y));
  return b.build();
}

/// An image in floats, with the nodes that the others lack.
Bytes float_image() {
  PayloadBuilder b;
  const uint32_t x = b.input(Type::fp32, {2, 4, 4, 2}), y = b.output(Type::fp32, {2, 3, 3, 2}),
                 index = b.output(Type::int32, {2, 3, 3, 2}),
                 w = b.constant(Type::fp32, {2, 2, 2, 2}, numbers(16)),
                 slope = b.constant(Type::fp32, {1, 1, 1, 2}, Floats{0.1f, 0.2f}),
                 up = b.inner(Type::fp32, {2, 8, 8, 2}), act = b.inner(Type::fp32, {2, 8, 8, 2}),
                 flat = b.inner(Type::fp32, {256}), back = b.inner(Type::fp32, {2, 8, 8, 2}),
                 large = b.inner(Type::fp32, {2, 6, 6, 2});
  b.node(Kind::XNNConvTranspose2d, fb::Create_XNNNodeConv(b.fbb, 0, 0, 0, 0, 2, 2, 2, 2, 1, 1, 2, 2,
                                                          1, 0, 0, x, w, kNoId, up));
  b.binary(Kind::XNNPReLU, up, slope, act);
  b.node(Kind::XNNStaticReshape,
         fb::CreateXNNStaticReshape(b.fbb, 1, b.fbb.CreateVector(Dims{0}), act, flat));
  b.node(Kind::XNNStaticReshape,
         fb::CreateXNNStaticReshape(b.fbb, 4, b.fbb.CreateVector(Dims{0, 8, 8, 2}), flat, back));
  b.node(Kind::XNNStaticResizeBilinear2D,
         fb::CreateXNNStaticResizeBilinear2D(b.fbb, 6, 6, back, large, 8));
  b.node(Kind::XNNArgMaxPooling2d,
         fb::CreateXNNArgMaxPooling2d(b.fbb, 0, 0, 0, 0, 2, 2, large, y, index));
  return b.build();
}

class Quiet {
 public:
  Quiet() : pal_(*runtime::get_pal_impl()) {
    runtime::PalImpl quiet = pal_;
    quiet.emit_log_message = [](et_timestamp_t, et_pal_log_level_t, const char*, const char*,
                                size_t, const char*, size_t) {};
    runtime::register_pal(quiet);
  }
  ~Quiet() { runtime::register_pal(pal_); }

 private:
  runtime::PalImpl pal_;
};

TEST(XnnpackMutation, DamagedGraphsAreRefusedOrRunWithinTheirMemory) {
  runtime::runtime_init();
  const Quiet quiet;
  Random random(1);
  for (const Bytes& whole : {integer_image(), rows_and_groups(), float_image()}) {
    ASSERT_EQ(use_payload(whole.data(), whole.size(), nullptr, kMaxBytes, random), Error::Ok);
    for (const auto mutate : {mutate_bytes, mutate_fields, mutate_together}) {
      size_t refused = 0, rounds = 1500;
      for (size_t i = 0; i < rounds; ++i) {
        const Bytes bytes = mutate(whole, random);
        refused += use_payload(bytes.data(), bytes.size(), nullptr, kMaxBytes, random) != Error::Ok;
      }
      EXPECT_GT(refused, rounds / 16);
      EXPECT_LT(refused, rounds);
    }
  }
}

TEST(XnnpackMutation, GraphsOfAnyNodesAreRefusedOrRunWithinTheirMemory) {
  runtime::runtime_init();
  const Quiet quiet;
  Random random(1);
  size_t refused = 0, rounds = 3000;
  std::set<Kind> run;
  for (size_t i = 0; i < rounds; ++i) {
    const Bytes bytes = generate_payload(random);
    const Error error = use_payload(bytes.data(), bytes.size(), nullptr, kMaxBytes, random);
    refused += error != Error::Ok;
    if (error != Error::Ok) continue;
    const UnpackedPayload payload = unpack_payload(bytes);
    for (const auto& node : payload.graph->xnodes) run.insert(node->xnode_union.type);
  }
  // Most fit together.
  EXPECT_LT(refused, rounds / 2);
  for (const Kind kind : fb::EnumValuesXNodeUnion()) {
    EXPECT_EQ(run.count(kind), find_operation(kind) == nullptr ? 0 : 1)
        << fb::EnumNameXNodeUnion(kind);
  }
}

TEST(XnnpackMutation, RanksThatTheNodesDoNotGiveAreRefused) {
  PayloadBuilder b;
  const uint32_t x = b.input(Type::fp32, {2, 3}), y = b.output(Type::fp32, {1, 1}),
                 flat = b.inner(Type::fp32, {2, 3}),
                 rows = b.inner(Type::qdint8, {2, 3}, {.row_dims = 2}),
                 w = b.constant(Type::qcint8, {1, 6}, std::vector<int8_t>(6), {.scales = {1}});
  b.node(Kind::XNNStaticReshape,
         fb::CreateXNNStaticReshape(b.fbb, 1, b.fbb.CreateVector(Dims{6}), x, flat));
  b.unary(Kind::XNNConvert, flat, rows);
  b.node(Kind::XNNFullyConnected, fb::CreateXNNFullyConnected(b.fbb, rows, w, kNoId, y));
  EXPECT_EQ(Loaded(b).error, Error::InvalidProgram);
}

TEST(XnnpackMutation, NoScalesForNoChannelsAreRead) {
  PayloadBuilder b;
  const uint32_t x = b.input(Type::fp32, {2}), y = b.output(Type::fp32, {2});
  b.unary(Kind::XNNAbs, x, y);
  b.value(Type::qcint8, {0, 1}, {}, 0, kNoId, 0);
  EXPECT_EQ(Loaded(b).error, Error::Ok);
}

TEST(XnnpackMutation, IndicesOf64BitsAreNoInput) {
  PayloadBuilder b;
  const uint32_t x = b.input(Type::int32, {2}), y = b.output(Type::int32, {2});
  b.unary(Kind::XNNCopy, x, y);
  Tensors<ScalarType::Long> longs;
  EXPECT_EQ(Loaded(b).run({longs.ones({2}), longs.ones({2})}), Error::InvalidArgument);
}

}  // namespace
}  // namespace executorch::backends::xnnpack::testing
