/// Payloads by hand, for tests: values and nodes in order, constants behind the flatbuffer.
#pragma once

#include <executorch/backends/xnnpack/runtime/executor.h>
#include <executorch/backends/xnnpack/runtime/graph.h>
#include <executorch/runtime/core/exec_aten/testing_util/tensor_factory.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace executorch::backends::xnnpack::testing {

namespace fb = fb_xnnpack;
using Kind = fb::XNodeUnion;
using Dims = std::vector<uint32_t>;
using Sizes = std::vector<int32_t>;
using Floats = std::vector<float>;
using aten::ScalarType;
template <ScalarType type>
using Tensors = runtime::testing::TensorFactory<type>;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Which of the fields counts follows from the value's type.
struct Quantization {
  float scale = 1;
  int32_t zero_point = 0;
  Floats scales = {};
  int32_t channel_dim = 0;
  int32_t group_size = 0;
  int32_t row_dims = 1;
  bool of_no_kind = false;  // parameters, but of which kind is not said
};

class PayloadBuilder {
 public:
  flatbuffers::FlatBufferBuilder fbb;
  /// The next external id; inputs and outputs are numbered in the order in which they are added.
  uint32_t n_externals = 0;

  uint32_t input(Type type, const Dims& dims, const Quantization& q = {}) {
    return value(type, dims, q, 0, n_externals++, 1);
  }
  uint32_t output(Type type, const Dims& dims, const Quantization& q = {}) {
    return value(type, dims, q, 0, n_externals++, 2);
  }
  uint32_t inner(Type type, const Dims& dims, const Quantization& q = {}) {
    return value(type, dims, q, 0, kNoId, 0);
  }
  template <class T>
  uint32_t constant(Type type, const Dims& dims, const std::vector<T>& data,
                    const Quantization& q = {}) {
    return value(type, dims, q, data_entry(data), kNoId, 0);
  }
  uint32_t value(Type type, const Dims& dims, const Quantization& q, uint32_t data,
                 uint32_t external, uint32_t flags, Type on_entry = Type::invalid) {
    const auto id = static_cast<uint32_t>(values_.size());
    const auto scales = scales_of(type, q);
    const auto tensor =
        fb::CreateXNNTensorValue(fbb, type, static_cast<uint32_t>(dims.size()),
                                 fbb.CreateVector(dims), data, external, flags, id, on_entry);
    const auto entry = scales.second.IsNull()
                           ? fb::CreateXValue(fbb, fb::XValueUnion::XNNTensorValue, tensor.Union())
                           : fb::CreateXValue(fbb, fb::XValueUnion::XNNQuantizedTensorValue,
                                              fb::CreateXNNQuantizedTensorValue(
                                                  fbb, tensor, scales.first, scales.second)
                                                  .Union());
    values_.push_back(entry);
    return id;
  }

  template <class Table>
  void node(Kind kind, flatbuffers::Offset<Table> table, float low = -kInfinity,
            float high = kInfinity) {
    nodes_.push_back(
        fb::CreateXNode(fbb, kind, table.Union(), 0, fb::CreateOutputMinMax(fbb, low, high)));
  }
  void unary(Kind kind, uint32_t x, uint32_t y, float low = -kInfinity, float high = kInfinity) {
    node(kind, fb::Create_XNNNode1x1(fbb, x, y), low, high);
  }
  void binary(Kind kind, uint32_t a, uint32_t b, uint32_t y, float low = -kInfinity,
              float high = kInfinity) {
    node(kind, fb::Create_XNNNode2x1(fbb, a, b, y), low, high);
  }

  /// The bytes of an entry of constant_data.
  template <class T>
  uint32_t data_entry(const std::vector<T>& data) {
    data_.resize((data_.size() + 15) / 16 * 16);
    entries_.push_back(fb::CreateConstantDataOffset(fbb, data_.size(), data.size() * sizeof(T)));
    const auto* bytes = reinterpret_cast<const uint8_t*>(data.data());
    data_.insert(data_.end(), bytes, bytes + data.size() * sizeof(T));
    return static_cast<uint32_t>(entries_.size());
  }
  uint32_t named_entry(const std::string& key) {
    entries_.push_back(fb::CreateConstantDataOffset(fbb, ~uint64_t{0}, 0, fbb.CreateString(key)));
    return static_cast<uint32_t>(entries_.size());
  }

  std::vector<uint8_t> build(const char* version = "XN01") {
    entries_.insert(entries_.begin(),
                    fb::CreateConstantDataOffset(fbb, 0, 0, fbb.CreateString("")));
    fbb.Finish(fb::CreateXNNGraph(fbb, fbb.CreateString("0"), fbb.CreateVector(nodes_),
                                  fbb.CreateVector(values_), n_externals, 0, 0, 0, 0,
                                  fbb.CreateVector(entries_)),
               version);
    const auto size = static_cast<uint32_t>(fbb.GetSize());
    const uint32_t data_at = 32 + (size + 15) / 16 * 16;
    std::vector<uint8_t> bytes(data_at);
    std::memcpy(&bytes[4], "XH00", 4);
    put(bytes, 8, uint16_t{30});
    put(bytes, 10, uint32_t{32});
    put(bytes, 14, size);
    put(bytes, 18, data_at);
    put(bytes, 22, uint64_t{data_.size()});
    std::memcpy(&bytes[32], fbb.GetBufferPointer(), size);
    bytes.insert(bytes.end(), data_.begin(), data_.end());
    return bytes;
  }

 private:
  template <class T>
  static void put(std::vector<uint8_t>& bytes, size_t at, T number) {
    std::memcpy(&bytes[at], &number, sizeof(number));
  }

  std::pair<fb::XNNQuantParams, flatbuffers::Offset<void>> scales_of(Type type,
                                                                     const Quantization& q) {
    switch (type) {
      case Type::qint8:
      case Type::quint8:
      case Type::qint32:
        return {fb::XNNQuantParams::PerTensorQuant,
                fb::CreatePerTensorQuant(fbb, q.scale, q.zero_point).Union()};
      case Type::qcint8:
      case Type::qcint32:
      case Type::qcint4:
        return {fb::XNNQuantParams::PerChannelQuant,
                fb::CreatePerChannelQuant(fbb, 0, q.channel_dim, data_entry(q.scales),
                                          static_cast<uint32_t>(q.scales.size()))
                    .Union()};
      case Type::qdint8:
        return {fb::XNNQuantParams::PerTokenDynamicQuant,
                fb::CreatePerTokenDynamicQuant(fbb, q.row_dims).Union()};
      case Type::qbint4: {
        std::vector<uint16_t> scales;
        for (const float scale : q.scales) {
          uint32_t bits;
          std::memcpy(&bits, &scale, 4);
          scales.push_back(static_cast<uint16_t>(bits >> 16));
        }
        const auto n = static_cast<uint32_t>(scales.size());
        return {fb::XNNQuantParams::PerChannelGroupQuant,
                fb::CreatePerChannelGroupQuant(fbb, 0, q.channel_dim, q.group_size,
                                               data_entry(scales), n)
                    .Union()};
      }
      default:
        return {fb::XNNQuantParams::NONE,
                q.of_no_kind ? fb::CreatePerTensorQuant(fbb, 1, 0).Union() : 0};
    }
  }

  std::vector<flatbuffers::Offset<fb::XValue>> values_;
  std::vector<flatbuffers::Offset<fb::XNode>> nodes_;
  std::vector<flatbuffers::Offset<fb::ConstantDataOffset>> entries_;
  std::vector<uint8_t> data_;
};

/// A payload that is loaded, with the tensors of its calls.
class Loaded {
 public:
  explicit Loaded(std::vector<uint8_t> bytes, const runtime::NamedDataMap* data = nullptr)
      : bytes_(std::move(bytes)) {
    runtime::runtime_init();
    auto graph = read_graph(bytes_.data(), bytes_.size(), data);
    error = graph.error();
    if (graph.ok()) executor_ = std::make_unique<Executor>(std::move(*graph));
  }
  explicit Loaded(PayloadBuilder& builder) : Loaded(builder.build()) {}

  Error error;

  /// `args` by external slot.
  Error run(std::vector<aten::Tensor> args) {
    std::vector<runtime::EValue> values(args.begin(), args.end());
    std::vector<runtime::EValue*> pointers;
    for (auto& value : values) pointers.push_back(&value);
    cpu::HeapScratch scratch;
    return executor_->execute({pointers.data(), pointers.size()}, nullptr, scratch);
  }

 private:
  std::vector<uint8_t> bytes_;
  std::unique_ptr<Executor> executor_;
};

template <class T = float>
std::vector<T> elements(const aten::Tensor& tensor) {
  const T* data = tensor.const_data_ptr<T>();
  return {data, data + tensor.numel()};
}

/// Numbers of no pattern in [low, high).
inline Floats numbers(size_t n, float low = -2, float high = 2, uint32_t seed = 1) {
  Floats list(n);
  for (float& x : list) {
    seed = seed * 1664525 + 1013904223;
    x = low + (high - low) * static_cast<float>(seed >> 8) * 0x1p-24f;
  }
  return list;
}

/// `expected` within `steps` roundings to float of the largest of them.
inline void expect_near(const Floats& found, const std::vector<double>& expected, double steps) {
  ASSERT_EQ(found.size(), expected.size());
  double largest = 0;
  for (const double x : expected)
    largest = std::isfinite(x) ? std::max(largest, std::abs(x)) : largest;
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], steps * largest * 0x1p-23) << "element " << i;
  }
}

inline Tensors<ScalarType::Float> floats;
inline Tensors<ScalarType::Half> halves;

/// One node from `x` to a result of `out` dims, in float.
inline Floats run_unary(const std::function<void(PayloadBuilder&, uint32_t, uint32_t)>& add,
                        const Dims& dims, const Floats& x, const Dims& out) {
  PayloadBuilder b;
  const uint32_t in = b.input(Type::fp32, dims), to = b.output(Type::fp32, out);
  add(b, in, to);
  Loaded loaded(b);
  EXPECT_EQ(loaded.error, Error::Ok);
  if (loaded.error != Error::Ok) return {};
  const auto y = floats.zeros(Sizes(out.begin(), out.end()));
  EXPECT_EQ(loaded.run({floats.make(Sizes(dims.begin(), dims.end()), x), y}), Error::Ok);
  return elements(y);
}

}  // namespace executorch::backends::xnnpack::testing
