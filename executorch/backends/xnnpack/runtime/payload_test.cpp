// What a payload may say, and how its graph is laid out and run.
#include <executorch/backends/xnnpack/runtime/operation.h>
#include <executorch/backends/xnnpack/runtime/payload_builder.h>
#include <executorch/runtime/platform/platform.h>

#include <functional>
#include <map>
#include <thread>

namespace executorch::backends::xnnpack::testing {
namespace {

/// y = abs(x) * 2 through an inner value, [2, 3].
struct Small {
  PayloadBuilder b;
  uint32_t x, two, inner, y;

  Small() {
    x = b.input(Type::fp32, {2, 3});
    two = b.constant(Type::fp32, {1}, Floats{2});
    inner = b.inner(Type::fp32, {2, 3});
    y = b.output(Type::fp32, {2, 3});
  }
  std::vector<uint8_t> bytes() {
    b.unary(Kind::XNNAbs, x, inner);
    b.binary(Kind::XNNMultiply, inner, two, y);
    return b.build();
  }
};

TEST(XnnpackPayload, KindsOfAFormHaveOneTable) {
  const auto* const members = fb::XNodeUnionTypeTable();
  std::map<Form, int> tables;
  for (const Kind kind : fb::EnumValuesXNodeUnion()) {
    const Operation* const operation = find_operation(kind);
    const bool is_left_out = kind == Kind::NONE || kind == Kind::XNNScaledDotProductAttention;
    ASSERT_EQ(operation == nullptr, is_left_out) << fb::EnumNameXNodeUnion(kind);
    if (is_left_out) continue;
    const int table = members->type_codes[static_cast<size_t>(kind)].sequence_ref;
    EXPECT_EQ(tables.emplace(operation->form, table).first->second, table) << operation->name();
  }
}

TEST(XnnpackPayload, RunsAndFollowsTheShapesOfItsInputs) {
  Loaded loaded(Small().bytes());
  ASSERT_EQ(loaded.error, Error::Ok);
  for (const int rows : {2, 1, 9, 3}) {
    const auto in = numbers(static_cast<size_t>(rows) * 3);
    const auto y = floats.make({9, 3}, std::vector<float>(27), {},
                               runtime::TensorShapeDynamism::DYNAMIC_BOUND);
    ASSERT_EQ(loaded.run({floats.make({rows, 3}, {in.begin(), in.end()}), y}), Error::Ok);
    ASSERT_EQ(y.size(0), rows);
    for (size_t i = 0; i < in.size(); ++i) EXPECT_EQ(elements(y)[i], std::abs(in[i]) * 2);
  }
}

TEST(XnnpackPayload, RefusesArgumentsOfAnotherTypeRankOrSize) {
  Loaded loaded(Small().bytes());
  const auto x = floats.ones({2, 3}), y = floats.zeros({2, 3});
  Tensors<ScalarType::Int> ints;
  EXPECT_EQ(loaded.run({x}), Error::InvalidArgument);
  EXPECT_EQ(loaded.run({ints.ones({2, 3}), y}), Error::InvalidArgument);
  EXPECT_EQ(loaded.run({floats.ones({6}), y}), Error::InvalidArgument);
  EXPECT_NE(loaded.run({floats.ones({4, 3}), y}), Error::Ok);
  EXPECT_EQ(loaded.run({x, y}), Error::Ok);  // a failed call leaves no trace
}

TEST(XnnpackPayload, TakesChannelsLastTensorsInMemoryOrder) {
  PayloadBuilder b;
  const uint32_t x = b.input(Type::fp32, {1, 2, 2, 3}), y = b.output(Type::fp32, {1, 1, 1, 3});
  b.unary(Kind::XNNGlobalAvgPooling2d, x, y);
  const auto in =
      floats.make_channels_last({1, 3, 2, 2}, {1, 10, 100, 2, 20, 200, 3, 30, 300, 4, 40, 400});
  const auto out = floats.make_channels_last({1, 3, 1, 1}, {0, 0, 0});
  ASSERT_EQ(Loaded(b).run({in, out}), Error::Ok);
  EXPECT_EQ(elements(out), (Floats{2.5f, 25, 250}));
}

struct Fault {
  const char* name;
  std::function<void(Small&)> make;
};
const Fault kFaults[] = {
    {"input that no node computes", [](Small& s) { s.b.unary(Kind::XNNAbs, s.inner, s.y); }},
    {"input of no value", [](Small& s) { s.b.unary(Kind::XNNAbs, 99, s.y); }},
    {"no input", [](Small& s) { s.b.unary(Kind::XNNAbs, kNoId, s.y); }},
    {"output of no value", [](Small& s) { s.b.unary(Kind::XNNAbs, s.x, 99); }},
    {"output over an input", [](Small& s) { s.b.unary(Kind::XNNAbs, s.x, s.x); }},
    {"output over a constant", [](Small& s) { s.b.unary(Kind::XNNAbs, s.x, s.two); }},
    {"output computed twice",
     [](Small& s) {
       s.b.unary(Kind::XNNAbs, s.x, s.inner);
       s.b.unary(Kind::XNNAbs, s.x, s.inner);
     }},
    {"cycle",
     [](Small& s) {
       const uint32_t other = s.b.inner(Type::fp32, {2, 3});
       s.b.unary(Kind::XNNAbs, s.inner, other);
       s.b.unary(Kind::XNNAbs, other, s.inner);
     }},
    {"external output that no node computes", [](Small& s) { s.b.output(Type::fp32, {1}); }},
    {"external id taken", [](Small& s) { s.b.value(Type::fp32, {1}, {}, 0, 0, 1); }},
    {"external id too large", [](Small& s) { s.b.value(Type::fp32, {1}, {}, 0, 9, 1); }},
    {"external id without flags", [](Small& s) { s.b.value(Type::fp32, {1}, {}, 0, 1, 0); }},
    {"unknown flags", [](Small& s) { s.b.value(Type::fp32, {1}, {}, 0, kNoId, 4); }},
    {"too many externals", [](Small& s) { s.b.n_externals = 5000; }},
    {"constant of no entry", [](Small& s) { s.b.value(Type::fp32, {1}, {}, 77, kNoId, 0); }},
    {"constant with too few bytes",
     [](Small& s) {
       s.b.constant(Type::fp32, {3}, Floats{1, 2});
     }},
    {"too many dims",
     [](Small& s) {
       s.b.inner(Type::fp32, {1, 1, 1, 1, 1, 1, 1});
     }},
    {"too many elements",
     [](Small& s) {
       s.b.inner(Type::fp32, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF});
     }},
    {"no such type", [](Small& s) { s.b.inner(static_cast<Type>(99), {1}); }},
    {"quantized without parameters",
     [](Small& s) { s.b.value(Type::invalid, {1}, {}, 0, kNoId, 0); }},
    {"scale of zero", [](Small& s) { s.b.inner(Type::qint8, {1}, {0}); }},
    {"scale that is no number", [](Small& s) { s.b.inner(Type::qint8, {1}, {NAN}); }},
    {"zero point out of range",
     [](Small& s) {
       s.b.inner(Type::qint8, {1}, {1, 128});
     }},
    {"rows of more dims than there are",
     [](Small& s) { s.b.inner(Type::qdint8, {2}, {.row_dims = 2}); }},
    {"fewer scales than channels",
     [](Small& s) {
       s.b.inner(Type::qcint8, {3, 1}, {.scales = {1, 2}});
     }},
    {"channel dim beyond the rank",
     [](Small& s) { s.b.inner(Type::qcint8, {1}, {.scales = {1}, .channel_dim = 1}); }},
    {"groups that do not divide the row",
     [](Small& s) {
       s.b.inner(Type::qbint4, {1, 48}, {.scales = {1}, .group_size = 32});
     }},
    {"groups of nothing",
     [](Small& s) {
       s.b.inner(Type::qbint4, {1, 32}, {.scales = {1}, .group_size = 0});
     }},
    {"shapes that do not broadcast",
     [](Small& s) {
       const uint32_t other = s.b.constant(Type::fp32, {2}, Floats{1, 2});
       s.b.binary(Kind::XNNAdd, s.x, other, s.b.inner(Type::fp32, {2, 3}));
     }},
    {"no such kind", [](Small& s) { s.b.unary(static_cast<Kind>(77), s.x, s.inner); }},
    {"a kind that is not run",
     [](Small& s) {
       s.b.node(Kind::XNNScaledDotProductAttention,
                fb::CreateXNNScaledDotProductAttention(s.b.fbb));
     }},
    {"bounds the wrong way round",
     [](Small& s) {
       s.b.unary(Kind::XNNClamp, s.x, s.b.inner(Type::fp32, {2, 3}), 1, -1);
     }},
    {"permutation with one dim twice",
     [](Small& s) {
       s.b.node(Kind::XNNStaticTranspose,
                fb::CreateXNNStaticTranspose(s.b.fbb, 2, s.b.fbb.CreateVector(Dims{0, 0}), s.x,
                                             s.inner));
     }},
    {"shape of other elements",
     [](Small& s) {
       s.b.node(
           Kind::XNNStaticReshape,
           fb::CreateXNNStaticReshape(s.b.fbb, 1, s.b.fbb.CreateVector(Dims{5}), s.x, s.inner));
     }},
    {"list of another length than said",
     [](Small& s) {
       s.b.node(
           Kind::XNNStaticReshape,
           fb::CreateXNNStaticReshape(s.b.fbb, 2, s.b.fbb.CreateVector(Dims{6}), s.x, s.inner));
     }},
    {"slice beyond the end",
     [](Small& s) {
       s.b.node(Kind::XNNStaticSlice,
                fb::CreateXNNStaticSlice(s.b.fbb, 2, s.b.fbb.CreateVector(Dims{0, 2}),
                                         s.b.fbb.CreateVector(Dims{2, 2}), s.x, s.inner));
     }},
    {"quantization of no kind",
     [](Small& s) { s.b.value(Type::fp32, {2}, {.of_no_kind = true}, 0, kNoId, 0); }},
    {"axis beyond the rank",
     [](Small& s) {
       s.b.node(Kind::XNNConcatenate2,
                fb::Create_XNNCat(s.b.fbb, 2, s.x, s.x, kNoId, kNoId, s.inner));
     }},
    {"stride of zero",
     [](Small& s) {
       const uint32_t x = s.b.input(Type::fp32, {1, 2, 2, 1});
       s.b.node(Kind::XNNMaxPooling2d,
                fb::Create_XNNPooling2D(s.b.fbb, 0, 0, 0, 0, 2, 2, 0, 1, 1, 1, x,
                                        s.b.inner(Type::fp32, {1, 1, 1, 1})));
     }},
    {"filter of another shape than said",
     [](Small& s) {
       const uint32_t x = s.b.input(Type::fp32, {1, 2, 2, 1});
       const uint32_t w = s.b.constant(Type::fp32, {1, 2, 2, 1}, Floats(4));
       s.b.node(Kind::XNNConv2d,
                fb::Create_XNNNodeConv(s.b.fbb, 0, 0, 0, 0, 3, 3, 1, 1, 1, 1, 1, 1, 1, 0, 0, x, w,
                                       kNoId, s.b.inner(Type::fp32, {1, 1, 1, 1})));
     }},
};

TEST(XnnpackPayload, RefusesWhatDoesNotFitTogether) {
  for (const Fault& fault : kFaults) {
    Small small;
    fault.make(small);
    const Loaded loaded(small.bytes());
    EXPECT_TRUE(loaded.error == Error::InvalidProgram || loaded.error == Error::NotSupported)
        << fault.name << ": " << to_string(loaded.error);
  }
}

TEST(XnnpackPayload, RefusesOtherFormats) {
  Small small;
  auto bytes = small.bytes();
  const auto error_of = [](std::vector<uint8_t> b) { return Loaded(std::move(b)).error; };
  auto other = bytes;
  other[36] = 'Y';
  EXPECT_EQ(error_of(other), Error::DelegateInvalidCompatibility);
  other = bytes;
  other[4] = 'Y';  // then all of it would be a flatbuffer
  EXPECT_NE(error_of(other), Error::Ok);
  EXPECT_NE(error_of({}), Error::Ok);
  Small older;
  older.b.unary(Kind::XNNAbs, older.x, older.y);
  EXPECT_EQ(error_of(older.b.build("XN00")), Error::Ok);
}

/// Bytes by name.
class Data final : public runtime::NamedDataMap {
 public:
  std::map<std::string, Floats, std::less<>> entries;
  runtime::Result<const runtime::TensorLayout> get_tensor_layout(std::string_view) const override {
    return Error::NotImplemented;
  }
  runtime::Result<runtime::FreeableBuffer> get_data(std::string_view key) const override {
    const auto entry = entries.find(key);
    if (entry == entries.end()) return Error::NotFound;
    ++alive;
    return runtime::FreeableBuffer(
        entry->second.data(), entry->second.size() * 4,
        [](void* count, void*, size_t) { --*static_cast<int*>(count); }, &alive);
  }
  Error load_data_into(std::string_view, void*, size_t) const override {
    return Error::NotImplemented;
  }
  runtime::Result<uint32_t> get_num_keys() const override { return uint32_t{0}; }
  runtime::Result<const char*> get_key(uint32_t) const override { return Error::NotFound; }
  mutable int alive = 0;
};

TEST(XnnpackPayload, UsesNamedDataWhereItLiesAsLongAsItLives) {
  PayloadBuilder b;
  const uint32_t x = b.input(Type::fp32, {2}), y = b.output(Type::fp32, {2});
  const uint32_t w = b.value(Type::fp32, {2}, {}, b.named_entry("w"), kNoId, 0);
  b.binary(Kind::XNNAdd, x, w, y);
  const auto bytes = b.build();
  Data data;
  EXPECT_EQ(Loaded(bytes, &data).error, Error::NotFound);
  EXPECT_EQ(Loaded(bytes).error, Error::InvalidProgram);
  data.entries["w"] = {1};
  EXPECT_EQ(Loaded(bytes, &data).error, Error::InvalidProgram);
  data.entries["w"] = {1, 2};
  {
    Loaded loaded(bytes, &data);
    EXPECT_EQ(data.alive, 1);
    data.entries["w"][0] = 5;  // seen: nothing was copied
    const auto out = floats.zeros({2});
    ASSERT_EQ(loaded.run({floats.ones({2}), out}), Error::Ok);
    EXPECT_EQ(elements(out), (Floats{6, 3}));
  }
  EXPECT_EQ(data.alive, 0);
}

TEST(XnnpackPayload, QuantizesInputsOnEntryAsOlderFilesAsk) {
  PayloadBuilder b;
  const uint32_t x = b.value(Type::fp32, {1, 4}, {}, 0, 0, 1, Type::qint8);
  b.n_externals = 1;
  const uint32_t w =
      b.constant(Type::qcint8, {1, 4}, std::vector<int8_t>{1, 2, 3, 4}, {.scales = {0.5f}});
  const uint32_t y = b.output(Type::fp32, {1, 1});
  b.node(Kind::XNNFullyConnected, fb::CreateXNNFullyConnected(b.fbb, x, w, kNoId, y));
  const auto out = floats.zeros({1, 1});
  Loaded loaded(b);
  ASSERT_EQ(loaded.error, Error::Ok);
  ASSERT_EQ(loaded.run({floats.make({1, 4}, {0, 85, 170, 255}), out}), Error::Ok);
  EXPECT_EQ(elements(out)[0], 0.5f * (2 * 85 + 3 * 170 + 4 * 255));
}

TEST(XnnpackPlan, SharedMemoryNeverChangesAResult) {
  // Random graphs of what may run in place, be a view or end in an output, against plain
  // evaluation.
  uint32_t seed = 1;
  const auto random = [&seed](uint32_t n) {
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
  };
  for (int round = 0; round < 200; ++round) {
    PayloadBuilder b;
    std::vector<uint32_t> ids = {b.input(Type::fp32, {4, 6})};
    std::vector<Floats> expected = {numbers(24, -1, 1, static_cast<uint32_t>(round))};
    std::vector<size_t> outputs;
    for (int i = 0; i < 12; ++i) {
      const bool is_output = random(4) == 0 || i == 11;
      const uint32_t y = is_output ? b.output(Type::fp32, {4, 6}) : b.inner(Type::fp32, {4, 6});
      const size_t p = random(2) == 0 ? ids.size() - 1 : random(static_cast<uint32_t>(ids.size()));
      const size_t q = random(static_cast<uint32_t>(ids.size()));
      Floats result = expected[p];
      switch (random(4)) {
        case 0:
          b.unary(Kind::XNNNegate, ids[p], y);
          for (float& v : result) v = -v;
          break;
        case 1:
          b.unary(Kind::XNNCopy, ids[p], y);
          break;
        case 2:
          b.node(Kind::XNNStaticReshape,
                 fb::CreateXNNStaticReshape(b.fbb, 2, b.fbb.CreateVector(Dims{4, 6}), ids[p], y));
          break;
        default:
          b.binary(Kind::XNNSubtract, ids[p], ids[q], y);
          for (size_t j = 0; j < 24; ++j) result[j] -= expected[q][j];
      }
      if (is_output) outputs.push_back(ids.size());
      ids.push_back(y);
      expected.push_back(result);
    }
    Loaded loaded(b);
    ASSERT_EQ(loaded.error, Error::Ok);
    std::vector<aten::Tensor> args = {
        floats.make({4, 6}, {expected[0].begin(), expected[0].end()})};
    for (size_t i = 0; i < outputs.size(); ++i) args.push_back(floats.zeros({4, 6}));
    ASSERT_EQ(loaded.run(args), Error::Ok);
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_EQ(elements(args[i + 1]), expected[outputs[i]]) << "round " << round;
    }
    EXPECT_EQ(elements(args[0]), expected[0]);
  }
}

TEST(XnnpackPlan, DelegatesRunAtTheSameTime) {
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&wrong, t] {
      Tensors<ScalarType::Float> own;
      Loaded loaded(Small().bytes());
      for (int i = 0; i < 200; ++i) {
        const auto value = static_cast<float>(t * 1000) + static_cast<float>(i);
        const auto y = own.zeros({2, 3});
        if (loaded.run({own.full({2, 3}, value), y}) != Error::Ok ||
            elements(y) != Floats(6, value * 2)) {
          ++wrong[t];
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

/// One node of most forms, with every kind of value.
std::vector<uint8_t> varied() {
  PayloadBuilder b;
  const auto list = [&b](const Dims& dims) { return b.fbb.CreateVector(dims); };
  const uint32_t x = b.input(Type::fp32, {1, 2, 2, 4}), y = b.output(Type::fp32, {1, 36}),
                 q = b.inner(Type::qint8, {1, 2, 2, 4}, {0.1f, 1}),
                 w = b.constant(Type::qcint8, {2, 1, 1, 4}, std::vector<int8_t>(8, 3),
                                {.scales = {0.1f, 0.2f}}),
                 conv = b.inner(Type::qint8, {1, 2, 2, 2}, {0.1f, 0}),
                 back = b.inner(Type::fp32, {1, 2, 2, 2}),
                 pooled = b.inner(Type::fp32, {1, 1, 1, 2}),
                 large = b.inner(Type::fp32, {1, 2, 3, 2}),
                 padded = b.inner(Type::fp32, {1, 3, 3, 2}),
                 cat = b.inner(Type::fp32, {1, 3, 6, 2}),
                 transposed = b.inner(Type::fp32, {1, 2, 3, 6}),
                 flat = b.inner(Type::fp32, {1, 36}), rows = b.inner(Type::qdint8, {1, 36}),
                 w4 = b.constant(Type::qcint4, {36, 36}, std::vector<uint8_t>(36 * 18, 0x5A),
                                 {.scales = Floats(36, 0.5f)});
  b.unary(Kind::XNNConvert, x, q);
  b.node(Kind::XNNConv2d, fb::Create_XNNNodeConv(b.fbb, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 4, 2, 1, 0, 0,
                                                 q, w, kNoId, conv));
  b.unary(Kind::XNNConvert, conv, back);
  b.node(Kind::XNNMaxPooling2d,
         fb::Create_XNNPooling2D(b.fbb, 0, 0, 0, 0, 2, 2, 1, 1, 1, 1, back, pooled));
  b.node(Kind::XNNStaticResizeBilinear2D,
         fb::CreateXNNStaticResizeBilinear2D(b.fbb, 2, 3, pooled, large));
  b.node(Kind::XNNStaticConstantPad,
         fb::CreateXNNStaticConstantPad(b.fbb, list({0, 1, 0, 0}), list({0, 0, 0, 0}), 1, large,
                                        padded));
  b.node(Kind::XNNConcatenate2, fb::Create_XNNCat(b.fbb, 2, padded, padded, kNoId, kNoId, cat));
  b.node(Kind::XNNStaticTranspose,
         fb::CreateXNNStaticTranspose(b.fbb, 4, list({0, 3, 1, 2}), cat, transposed));
  b.node(Kind::XNNStaticReshape,
         fb::CreateXNNStaticReshape(b.fbb, 2, list({1, 0}), transposed, flat));
  b.unary(Kind::XNNConvert, flat, rows);
  b.node(Kind::XNNFullyConnected, fb::CreateXNNFullyConnected(b.fbb, rows, w4, kNoId, y));
  return b.build();
}

/// Loads the bytes and, if they are taken, runs them as the undamaged ones would be.
Error try_bytes(const std::vector<uint8_t>& bytes) {
  Loaded loaded(bytes);
  if (loaded.error != Error::Ok) return loaded.error;
  Tensors<ScalarType::Float> own;
  return loaded.run({own.ones({1, 2, 2, 4}), own.zeros({1, 36})});
}

TEST(XnnpackPayload, DamagedBytesAreRefusedOrRun) {
  const auto whole = varied();
  ASSERT_EQ(try_bytes(whole), Error::Ok);
  const runtime::PalImpl pal = *runtime::get_pal_impl();
  auto quiet = pal;
  quiet.emit_log_message = [](et_timestamp_t, et_pal_log_level_t, const char*, const char*, size_t,
                              const char*, size_t) {};
  runtime::register_pal(quiet);
  size_t refused = 0;
  for (size_t size = 0; size < whole.size(); size += 3) {
    refused +=
        try_bytes({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}) != Error::Ok;
  }
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const int value : {0x00, 0xff, whole[i] ^ 1, whole[i] ^ 0x80, whole[i] + 1}) {
      auto damaged = whole;
      damaged[i] = static_cast<uint8_t>(value);
      refused += try_bytes(damaged) != Error::Ok;
    }
  }
  runtime::register_pal(pal);
  EXPECT_GT(refused, whole.size() / 2);
}

}  // namespace
}  // namespace executorch::backends::xnnpack::testing
