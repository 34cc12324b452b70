#include <executorch/devtools/etdump/testing.h>
#include <executorch/runtime/core/device_allocator.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/exec_aten/testing_util/tensor_factory.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace executorch::etdump {
namespace {

namespace fb = etdump_flatbuffer;
using aten::ScalarType;
using aten::Tensor;
using runtime::Error;
using runtime::EValue;
using runtime::LoggedEValueType;
using runtime::testing::TensorFactory;

class ETDumpValuesTest : public ETDumpGenTest {};
INSTANTIATE_TEST_SUITE_P(Memory, ETDumpValuesTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Static" : "Growing"; });

TEST_P(ETDumpValuesTest, NumbersAndTruthsAreRecordedByKind) {
  gen_.create_event_block("Execute");
  gen_.set_chain_debug_handle(1, 4);
  EXPECT_TRUE(gen_.log_evalue(EValue(int64_t{-5})).get());
  EXPECT_TRUE(gen_.log_evalue(EValue(0.25)).get());
  EXPECT_TRUE(gen_.log_evalue(EValue(true)).get());
  gen_.set_chain_debug_handle(runtime::kUnsetChainId, runtime::kUnsetDebugHandle);
  EXPECT_TRUE(gen_.log_evalue(EValue(false), LoggedEValueType::kProgramOutput).get());
  const Dump dump(gen_);
  ASSERT_TRUE(dump.valid());
  EXPECT_EQ(dump.debug(0).chain_index(), 1u);
  EXPECT_EQ(dump.debug(0).instruction_id(), 4);
  EXPECT_EQ(dump.debug(0).name(), nullptr);
  EXPECT_EQ(dump.debug(0).debug_entry()->val(), fb::ValueType::Int);
  EXPECT_EQ(dump.debug(0).debug_entry()->int_value()->int_val(), -5);
  EXPECT_EQ(dump.debug(0).debug_entry()->output(), nullptr);
  EXPECT_EQ(dump.debug(1).debug_entry()->val(), fb::ValueType::Double);
  EXPECT_EQ(dump.debug(1).debug_entry()->double_value()->double_val(), 0.25);
  EXPECT_EQ(dump.debug(2).debug_entry()->val(), fb::ValueType::Bool);
  EXPECT_TRUE(dump.debug(2).debug_entry()->bool_value()->bool_val());
  EXPECT_EQ(dump.debug(3).chain_index(), ~uint64_t{0});
  EXPECT_EQ(dump.debug(3).instruction_id(), 0);
  EXPECT_FALSE(dump.debug(3).debug_entry()->bool_value()->bool_val());
  EXPECT_TRUE(dump.debug(3).debug_entry()->output()->bool_val());
}

TEST_P(ETDumpValuesTest, TensorsLieAlignedInTheDebugBuffer) {
  alignas(64) uint8_t data[200] = {};
  ASSERT_TRUE(gen_.set_debug_buffer({data, sizeof(data)}).ok());
  gen_.create_event_block("Execute");
  TensorFactory<ScalarType::Float> floats;
  TensorFactory<ScalarType::Long> longs;
  const Tensor a = floats.make({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor b = longs.make({2}, {7, 8});
  const Tensor empty = floats.make({0, 3}, {});
  EXPECT_TRUE(gen_.log_evalue(EValue(a)).get());
  EXPECT_TRUE(gen_.log_evalue(EValue(b), LoggedEValueType::kProgramOutput).get());
  EXPECT_TRUE(gen_.log_evalue(EValue(empty)).get());
  EXPECT_EQ(gen_.get_data_sink()->get_used_bytes(), 80u);
  const Dump dump(gen_);
  ASSERT_TRUE(dump.valid());
  const fb::Tensor& first = *dump.debug(0).debug_entry()->tensor();
  EXPECT_EQ(dump.debug(0).debug_entry()->val(), fb::ValueType::Tensor);
  EXPECT_EQ(first.scalar_type(), executorch_flatbuffer::ScalarType::FLOAT);
  EXPECT_EQ(first.sizes()->Get(0), 2);
  EXPECT_EQ(first.sizes()->Get(1), 3);
  EXPECT_EQ(first.strides()->Get(0), 3);
  EXPECT_EQ(first.strides()->Get(1), 1);
  EXPECT_EQ(first.offset(), 0);
  EXPECT_EQ(dump.debug(1).debug_entry()->tensor()->offset(), 64);
  EXPECT_EQ(dump.debug(2).debug_entry()->tensor()->offset(), -1);
  EXPECT_EQ(std::memcmp(data, a.const_data_ptr(), 24), 0);
  EXPECT_EQ(std::memcmp(data + 64, b.const_data_ptr(), 16), 0);
}

TEST_P(ETDumpValuesTest, AListOfTensorsIsOneValue) {
  alignas(64) uint8_t data[200];
  ASSERT_TRUE(gen_.set_debug_buffer({data, sizeof(data)}).ok());
  gen_.create_event_block("Execute");
  TensorFactory<ScalarType::Int> ints;
  const Tensor tensors[] = {ints.make({1}, {1}), ints.make({2}, {2, 3}), ints.make({}, {4})};
  EXPECT_TRUE(
      gen_.log_intermediate_output_delegate("split", -1, aten::ArrayRef<Tensor>(tensors, 3)).get());
  const Dump dump(gen_);
  ASSERT_TRUE(dump.valid());
  EXPECT_EQ(dump.debug(0).delegate_debug_id_str()->str(), "split");
  EXPECT_EQ(dump.debug(0).debug_entry()->val(), fb::ValueType::TensorList);
  const auto& list = *dump.debug(0).debug_entry()->tensor_list()->tensors();
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list.Get(1)->sizes()->Get(0), 2);
  EXPECT_EQ(list.Get(1)->offset(), 64);
  EXPECT_EQ(list.Get(2)->sizes()->size(), 0u);
}

TEST_P(ETDumpValuesTest, ValuesThatCannotBeRecordedGiveAnErrorAndLeaveTheRest) {
  gen_.create_event_block("Execute");
  TensorFactory<ScalarType::Float> floats;
  TensorFactory<ScalarType::UInt32> unsigneds;
  TensorFactory<ScalarType::Half> halves;
  const Tensor a = floats.make({2}, {1, 2});
  EXPECT_EQ(gen_.log_evalue(EValue(a)).error(), Error::InvalidArgument);  // no place
  EXPECT_EQ(gen_.log_evalue(EValue()).error(), Error::InvalidArgument);
  alignas(64) uint8_t data[70];
  EXPECT_EQ(gen_.set_debug_buffer({}).error(), Error::InvalidArgument);
  ASSERT_TRUE(gen_.set_debug_buffer({data, sizeof(data)}).ok());
  EXPECT_EQ(gen_.log_evalue(EValue(unsigneds.make({1}, {1}))).error(), Error::InvalidArgument);
  EXPECT_TRUE(gen_.log_evalue(EValue(halves.make({1}, {1}))).get());
  const Tensor list[] = {a, a};
  EXPECT_EQ(
      gen_.log_intermediate_output_delegate(nullptr, 1, aten::ArrayRef<Tensor>(list, 2)).error(),
      Error::OutOfResources);
  EXPECT_TRUE(gen_.log_evalue(EValue(int64_t{1})).get());
  const Dump dump(gen_);
  ASSERT_TRUE(dump.valid());
  EXPECT_EQ(dump.run(0).events()->size(), 2u);
}

TEST_P(ETDumpValuesTest, Bfloat16IsRecordedAsTheFloatsThatItMeans) {
  gen_.create_event_block("Execute");
  TensorFactory<ScalarType::BFloat16> brains;
  alignas(64) uint8_t data[64];
  ASSERT_TRUE(gen_.set_debug_buffer({data, sizeof(data)}).ok());
  EXPECT_TRUE(gen_.log_evalue(EValue(brains.make({3}, {1, -2.5, 3e38}))).get());
  const Dump dump(gen_);
  ASSERT_TRUE(dump.valid());
  const auto& tensor = *dump.run(0).events()->Get(0)->debug_event()->debug_entry()->tensor();
  EXPECT_EQ(static_cast<int>(tensor.scalar_type()), static_cast<int>(ScalarType::Float));
  float found[3];
  std::memcpy(found, data + tensor.offset(), sizeof(found));
  EXPECT_EQ(found[0], 1);
  EXPECT_EQ(found[1], -2.5);
  EXPECT_EQ(found[2], static_cast<float>(static_cast<aten::BFloat16>(3e38f)));
}

TEST_P(ETDumpValuesTest, TensorsWithoutMemoryAreZeros) {
  gen_.create_event_block("Execute");
  int32_t size = 3;
  uint8_t order = 0;
  int32_t stride = 1;
  aten::TensorImpl floats(ScalarType::Float, 1, &size, nullptr, &order, &stride);
  aten::TensorImpl brains(ScalarType::BFloat16, 1, &size, nullptr, &order, &stride);
  alignas(64) uint8_t data[80];
  std::memset(data, 1, sizeof(data));
  ASSERT_TRUE(gen_.set_debug_buffer({data, sizeof(data)}).ok());
  EXPECT_TRUE(gen_.log_evalue(EValue(Tensor(&floats))).get());
  EXPECT_TRUE(gen_.log_evalue(EValue(Tensor(&brains))).get());
  EXPECT_EQ(gen_.get_data_sink()->get_used_bytes(), 76u);
  EXPECT_EQ(std::string(data, data + 12), std::string(12, '\0'));
  EXPECT_EQ(std::string(data + 64, data + 77), std::string(12, '\0') + '\1');
}

TEST_P(ETDumpValuesTest, TensorsMadeWithoutStridesHaveThoseOfTheirDimOrder) {
  gen_.create_event_block("Execute");
  int32_t sizes[] = {2, 3};
  uint8_t by_column[] = {1, 0};
  float floats[6] = {};
  aten::TensorImpl bare(ScalarType::Float, 2, sizes, floats);
  aten::TensorImpl ordered(ScalarType::Float, 2, sizes, floats, by_column);
  alignas(64) uint8_t data[200];
  ASSERT_TRUE(gen_.set_debug_buffer({data, sizeof(data)}).ok());
  EXPECT_TRUE(gen_.log_evalue(EValue(Tensor(&bare))).get());
  EXPECT_TRUE(gen_.log_evalue(EValue(Tensor(&ordered))).get());
  const Dump dump(gen_);
  ASSERT_TRUE(dump.valid());
  EXPECT_EQ(dump.debug(0).debug_entry()->tensor()->strides()->Get(0), 3);
  EXPECT_EQ(dump.debug(0).debug_entry()->tensor()->strides()->Get(1), 1);
  EXPECT_EQ(dump.debug(1).debug_entry()->tensor()->strides()->Get(0), 1);
  EXPECT_EQ(dump.debug(1).debug_entry()->tensor()->strides()->Get(1), 2);
}

TEST_P(ETDumpValuesTest, TensorsWithoutALayoutOrOfTooManyDimensionsAreNotRecorded) {
  gen_.create_event_block("Execute");
  int32_t sizes[] = {2, 3};
  uint8_t twice[] = {1, 1};
  float floats[6] = {};
  aten::TensorImpl unordered(ScalarType::Float, 2, sizes, floats, twice);
  TensorFactory<ScalarType::Float> tf;
  const Tensor deep = tf.ones(std::vector<int32_t>(runtime::kTensorDimensionLimit + 1, 1));
  alignas(64) uint8_t data[200];
  ASSERT_TRUE(gen_.set_debug_buffer({data, sizeof(data)}).ok());
  EXPECT_EQ(gen_.log_evalue(EValue(Tensor(&unordered))).error(), Error::InvalidArgument);
  EXPECT_EQ(gen_.log_evalue(EValue(deep)).error(), Error::InvalidArgument);
  EXPECT_EQ(gen_.get_data_sink()->get_used_bytes(), 0u);
}

/// The memory of a device that the host sees, too, but must not be asked for.
class Device : public runtime::DeviceAllocator {
 public:
  using DeviceIndex = runtime::etensor::DeviceIndex;

  runtime::Result<void*> allocate(size_t, DeviceIndex, size_t) override {
    return Error::NotSupported;
  }
  void deallocate(void*, DeviceIndex) override {}
  Error copy_host_to_device(void*, const void*, size_t, DeviceIndex) override {
    return Error::NotSupported;
  }
  Error copy_device_to_host(void* dst, const void* src, size_t nbytes, DeviceIndex index) override {
    if (index != 1) return Error::InvalidArgument;
    std::memcpy(dst, src, nbytes);
    ++n_copies;
    return Error::Ok;
  }
  runtime::etensor::DeviceType device_type() const override {
    return runtime::etensor::DeviceType::CUDA;
  }

  int n_copies = 0;
};

TEST_P(ETDumpValuesTest, TensorsOfADeviceAreCopiedToTheHost) {
  static Device device;
  const auto cuda = runtime::etensor::DeviceType::CUDA;
  gen_.create_event_block("Execute");
  int32_t size = 2;
  uint8_t order = 0;
  int32_t stride = 1;
  float floats[] = {1.5f, 2.5f};
  aten::BFloat16 brains[] = {static_cast<aten::BFloat16>(3.5f), static_cast<aten::BFloat16>(4.5f)};
  const auto dynamism = aten::TensorShapeDynamism::STATIC;
  const auto log = [&](ScalarType type, void* data, int8_t index) {
    aten::TensorImpl tensor(type, 1, &size, data, &order, &stride, dynamism, cuda, index);
    return gen_.log_evalue(EValue(Tensor(&tensor)));
  };
  alignas(64) uint8_t data[80];
  ASSERT_TRUE(gen_.set_debug_buffer({data, sizeof(data)}).ok());
  if (runtime::get_device_allocator(cuda) == nullptr) {
    EXPECT_EQ(log(ScalarType::Float, floats, 1).error(), Error::NotSupported);
    runtime::register_device_allocator(&device);
  }
  device.n_copies = 0;
  EXPECT_TRUE(log(ScalarType::Float, floats, 1).get());
  EXPECT_TRUE(log(ScalarType::BFloat16, brains, 1).get());
  EXPECT_EQ(log(ScalarType::Float, floats, 0).error(), Error::NotSupported);
  EXPECT_EQ(device.n_copies, 2);
  float found[2];
  std::memcpy(found, data, sizeof(found));
  EXPECT_EQ(found[1], 2.5f);
  std::memcpy(found, data + 64, sizeof(found));
  EXPECT_EQ(found[1], 4.5f);
}

}  // namespace
}  // namespace executorch::etdump
