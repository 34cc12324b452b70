#include <executorch/devtools/etdump/etdump_filter.h>
#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/devtools/etdump/etdump_generated.h>
#include <executorch/runtime/core/device_allocator.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/event_tracer_hooks.h>
#include <executorch/runtime/core/exec_aten/testing_util/tensor_factory.h>
#include <gtest/gtest.h>

#include <cstdlib>
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
using runtime::EventTracerEntry;
using runtime::kUnsetDelegateDebugIntId;
using runtime::LoggedEValueType;
using runtime::testing::TensorFactory;

/// The file that `gen` gives, verified with alignment; null where it gives none.
class Dump {
 public:
  explicit Dump(ETDumpGen& gen) {
    const ETDumpResult result = gen.get_etdump_data();
    if (result.buf == nullptr) return;
    const auto* data = static_cast<const uint8_t*>(result.buf);
    bytes_.assign(data, data + result.size);  // aligned as a file would be
    if (!gen.is_static_etdump()) std::free(result.buf);
    flatbuffers::Verifier verifier(bytes_.data(), bytes_.size());
    if (fb::VerifySizePrefixedETDumpBuffer(verifier)) {
      root_ = fb::GetSizePrefixedETDump(bytes_.data());
    }
  }
  const fb::ETDump* operator->() const { return root_; }
  bool valid() const { return root_ != nullptr; }
  const fb::RunData& run(flatbuffers::uoffset_t i) const { return *root_->run_data()->Get(i); }
  const fb::ProfileEvent& profile(flatbuffers::uoffset_t i) const {
    return *run(0).events()->Get(i)->profile_event();
  }
  const fb::DebugEvent& debug(flatbuffers::uoffset_t i) const {
    return *run(0).events()->Get(i)->debug_event();
  }
  size_t size() const { return bytes_.size(); }

 private:
  std::vector<uint8_t> bytes_;
  const fb::ETDump* root_ = nullptr;
};

/// Every test runs with memory of its own and with memory of the caller's.
class ETDumpGenTest : public ::testing::TestWithParam<bool> {
 protected:
  ETDumpGenTest()
      : memory_(20001),
        // Not where a flatbuffer could begin.
        gen_(GetParam() ? runtime::Span<uint8_t>(memory_.data() + 1, 20000)
                        : runtime::Span<uint8_t>(nullptr, size_t{0})) {}
  std::vector<uint8_t> memory_;
  ETDumpGen gen_;
};
INSTANTIATE_TEST_SUITE_P(Memory, ETDumpGenTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Static" : "Growing"; });

TEST_P(ETDumpGenTest, NothingRecordedGivesNoDump) {
  EXPECT_EQ(gen_.is_static_etdump(), GetParam());
  const ETDumpResult result = gen_.get_etdump_data();
  EXPECT_EQ(result.buf, nullptr);
  EXPECT_EQ(result.size, 0u);
}

TEST_P(ETDumpGenTest, BlocksHoldTheirEventsInTheOrderOfTheirEnds) {
  gen_.create_event_block("Default");
  const EventTracerEntry outer = gen_.start_profiling("load");
  const EventTracerEntry inner = gen_.start_profiling("init", 2, 7);
  gen_.end_profiling(inner);
  gen_.end_profiling(outer);
  gen_.create_event_block("Execute");
  EXPECT_EQ(gen_.get_num_blocks(), 2u);
  const Dump dump(gen_);
  ASSERT_TRUE(dump.valid());
  EXPECT_EQ(dump->version(), 0u);
  ASSERT_EQ(dump->run_data()->size(), 2u);
  EXPECT_EQ(dump.run(0).name()->str(), "Default");
  EXPECT_EQ(dump.run(0).bundled_input_index(), -1);
  EXPECT_EQ(dump.run(0).allocators(), nullptr);
  ASSERT_EQ(dump.run(0).events()->size(), 2u);
  EXPECT_EQ(dump.profile(0).name()->str(), "init");
  EXPECT_EQ(dump.profile(0).chain_index(), 2);
  EXPECT_EQ(dump.profile(0).instruction_id(), 7);
  EXPECT_EQ(dump.profile(0).delegate_debug_id_int(), -1);
  EXPECT_EQ(dump.profile(0).delegate_debug_metadata(), nullptr);
  EXPECT_EQ(dump.profile(1).name()->str(), "load");
  EXPECT_EQ(dump.profile(1).chain_index(), -1);
  EXPECT_EQ(dump.profile(1).instruction_id(), 0);
  EXPECT_LE(dump.profile(1).start_time(), dump.profile(0).start_time());
  EXPECT_LE(dump.profile(0).start_time(), dump.profile(0).end_time());
  EXPECT_LE(dump.profile(0).end_time(), dump.profile(1).end_time());
  EXPECT_EQ(dump.run(1).name()->str(), "Execute");
  EXPECT_EQ(dump.run(1).events()->size(), 0u);
  EXPECT_EQ(gen_.error(), Error::Ok);
}

TEST_P(ETDumpGenTest, EventsBelongToTheInstructionOfTheScope) {
  gen_.create_event_block("Execute");
  {
    runtime::internal::EventTracerProfileInstructionScope instruction(&gen_, 0, 5);
    runtime::internal::EventTracerProfileOpScope scope(&gen_, "OPERATOR_CALL");
  }
  const Dump dump(gen_);
  ASSERT_TRUE(dump.valid());
  EXPECT_EQ(dump.profile(0).chain_index(), 0);
  EXPECT_EQ(dump.profile(0).instruction_id(), 5);
}

TEST_P(ETDumpGenTest, DelegatesNameTheirOperationsByNumberOrText) {
  gen_.create_event_block("Execute");
  const char metadata[] = {1, 0, 2};
  gen_.end_profiling_delegate(gen_.start_profiling_delegate(nullptr, 12), metadata, 3);
  gen_.log_profiling_delegate("conv", kUnsetDelegateDebugIntId, 100, 250, nullptr, 0);
  const Dump dump(gen_);
  ASSERT_TRUE(dump.valid());
  EXPECT_EQ(dump.profile(0).name(), nullptr);
  EXPECT_EQ(dump.profile(0).delegate_debug_id_int(), 12);
  EXPECT_EQ(dump.profile(0).delegate_debug_id_str(), nullptr);
  ASSERT_EQ(dump.profile(0).delegate_debug_metadata()->size(), 3u);
  EXPECT_EQ(std::memcmp(dump.profile(0).delegate_debug_metadata()->data(), metadata, 3), 0);
  EXPECT_EQ(dump.profile(1).name(), nullptr);
  EXPECT_EQ(dump.profile(1).delegate_debug_id_int(), -1);
  EXPECT_EQ(dump.profile(1).delegate_debug_id_str()->str(), "conv");
  EXPECT_EQ(dump.profile(1).delegate_debug_metadata()->size(), 0u);
  EXPECT_EQ(dump.profile(1).start_time(), 100u);
  EXPECT_EQ(dump.profile(1).end_time(), 250u);
}

TEST_P(ETDumpGenTest, ADelegateOperationWithBothOrNeitherIsLeftOut) {
  gen_.create_event_block("Execute");
  gen_.end_profiling_delegate(gen_.start_profiling_delegate("conv", 12), nullptr, 0);
  gen_.log_profiling_delegate(nullptr, kUnsetDelegateDebugIntId, 1, 2, nullptr, 0);
  EXPECT_EQ(gen_.error(), Error::InvalidArgument);
  const Dump dump(gen_);
  ASSERT_TRUE(dump.valid());
  EXPECT_EQ(dump.run(0).events()->size(), 0u);
}

TEST_P(ETDumpGenTest, AllocatorsAreRegisteredBeforeTheFirstEventOfABlock) {
  gen_.create_event_block("Default");
  EXPECT_EQ(gen_.track_allocator("method"), 1u);
  EXPECT_EQ(gen_.track_allocator("temp"), 2u);
  gen_.track_allocation(2, size_t{1} << 40);
  EXPECT_EQ(gen_.error(), Error::Ok);
  EXPECT_EQ(gen_.track_allocator("late"), 0u);
  EXPECT_EQ(gen_.error(), Error::InvalidState);
  gen_.track_allocation(3, 1);
  gen_.track_allocation(0, 1);
  const Dump dump(gen_);
  ASSERT_TRUE(dump.valid());
  ASSERT_EQ(dump.run(0).allocators()->size(), 2u);
  EXPECT_EQ(dump.run(0).allocators()->Get(0)->name()->str(), "method");
  EXPECT_EQ(dump.run(0).allocators()->Get(1)->name()->str(), "temp");
  ASSERT_EQ(dump.run(0).events()->size(), 1u);
  const auto& allocation = *dump.run(0).events()->Get(0)->allocation_event();
  EXPECT_EQ(allocation.allocator_id(), 2);
  EXPECT_EQ(allocation.allocation_size(), uint64_t{1} << 40);
}

TEST_P(ETDumpGenTest, WithoutABlockNothingIsRecordedAndNothingAborts) {
  gen_.end_profiling(gen_.start_profiling("early"));
  EXPECT_EQ(gen_.error(), Error::InvalidState);
  EXPECT_EQ(gen_.track_allocator("early"), 0u);
  EXPECT_EQ(gen_.log_evalue(EValue(int64_t{1})).error(), Error::InvalidState);
  EXPECT_EQ(gen_.get_etdump_data().buf, nullptr);
}

TEST_P(ETDumpGenTest, AfterADumpTheNextBlockBeginsAnother) {
  gen_.create_event_block("first");
  const EventTracerEntry pending = gen_.start_profiling("pending");
  EXPECT_TRUE(Dump(gen_).valid());
  EXPECT_EQ(gen_.get_etdump_data().buf, nullptr);
  gen_.end_profiling(gen_.start_profiling("between"));
  EXPECT_EQ(gen_.error(), Error::InvalidState);
  gen_.create_event_block("second");
  EXPECT_EQ(gen_.error(), Error::Ok);
  gen_.end_profiling(pending);
  const Dump dump(gen_);
  ASSERT_TRUE(dump.valid());
  ASSERT_EQ(dump->run_data()->size(), 1u);
  EXPECT_EQ(dump.run(0).name()->str(), "second");
  EXPECT_EQ(dump.run(0).events()->size(), 0u);
}

TEST_P(ETDumpGenTest, ResetForgetsWhatWasRecorded) {
  gen_.create_event_block("first");
  gen_.reset();
  EXPECT_EQ(gen_.get_num_blocks(), 0u);
  EXPECT_EQ(gen_.get_etdump_data().buf, nullptr);
  gen_.create_event_block("second");
  gen_.clear_builder();
  gen_.create_event_block("third");
  EXPECT_EQ(Dump(gen_).run(0).name()->str(), "third");
}

TEST_P(ETDumpGenTest, BlocksSayWhichBundledInputTheyRanOn) {
  gen_.create_event_block("Default");
  gen_.set_bundled_input_index(3);
  gen_.create_event_block("Execute");
  gen_.create_event_block("Execute");
  const Dump dump(gen_);
  EXPECT_EQ(dump.run(0).bundled_input_index(), -1);
  EXPECT_EQ(dump.run(1).bundled_input_index(), 3);
  EXPECT_EQ(dump.run(2).bundled_input_index(), 3);
}

TEST_P(ETDumpGenTest, NumbersAndTruthsAreRecordedByKind) {
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

TEST_P(ETDumpGenTest, TensorsLieAlignedInTheDebugBuffer) {
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

TEST_P(ETDumpGenTest, AListOfTensorsIsOneValue) {
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

TEST_P(ETDumpGenTest, ValuesThatCannotBeRecordedGiveAnErrorAndLeaveTheRest) {
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

TEST_P(ETDumpGenTest, Bfloat16IsRecordedAsTheFloatsThatItMeans) {
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

TEST_P(ETDumpGenTest, TensorsWithoutMemoryAreZeros) {
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

TEST_P(ETDumpGenTest, TensorsMadeWithoutStridesHaveThoseOfTheirDimOrder) {
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

TEST_P(ETDumpGenTest, TensorsWithoutALayoutOrOfTooManyDimensionsAreNotRecorded) {
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

TEST_P(ETDumpGenTest, TensorsOfADeviceAreCopiedToTheHost) {
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

TEST_P(ETDumpGenTest, AFilterLeavesOutputsOfDelegatesOut) {
  ETDumpFilter filter;
  ASSERT_TRUE(filter.add_regex("conv.*").ok());
  ASSERT_TRUE(filter.set_debug_handle_range(2, 4).ok());
  gen_.set_delegation_intermediate_output_filter(&filter);
  gen_.create_event_block("Execute");
  EXPECT_FALSE(gen_.log_intermediate_output_delegate("conv1", -1, 1).get());
  EXPECT_TRUE(gen_.log_intermediate_output_delegate("add", -1, true).get());
  EXPECT_FALSE(gen_.log_intermediate_output_delegate(nullptr, 3, 0.5).get());
  EXPECT_TRUE(gen_.log_intermediate_output_delegate(nullptr, 4, 0.5).get());
  EXPECT_EQ(gen_.log_intermediate_output_delegate(nullptr, -1, 0.5).error(),
            Error::InvalidArgument);
  const Dump dump(gen_);
  ASSERT_TRUE(dump.valid());
  ASSERT_EQ(dump.run(0).events()->size(), 2u);
  EXPECT_EQ(dump.debug(1).delegate_debug_id_int(), 4);
}

// All that one test of a dump can hold, so that each kind of event may be the one that is lost.
void record_everything(ETDumpGen& gen, const Tensor& tensor) {
  const Tensor list[] = {tensor, tensor};
  for (int block = 0; block < 3; ++block) {
    gen.create_event_block("Execute");
    const auto allocator = gen.track_allocator("allocator");
    for (int i = 0; i < 4; ++i) {
      const std::string name = "operator " + std::to_string(i);
      const EventTracerEntry entry = gen.start_profiling(name.c_str());
      (void)gen.log_evalue(EValue(tensor));
      (void)gen.log_evalue(EValue(int64_t{i}), LoggedEValueType::kProgramOutput);
      gen.track_allocation(allocator, 10);
      gen.log_profiling_delegate(nullptr, i, 1, 2, "metadata", 8);
      (void)gen.log_intermediate_output_delegate("x", -1, aten::ArrayRef<Tensor>(list, 2));
      gen.end_profiling(entry);
    }
  }
}

TEST(ETDumpGen, WhateverMemoryThereIsTheDumpIsValid) {
  TensorFactory<ScalarType::Float> floats;
  const Tensor tensor = floats.make({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  std::vector<uint8_t> data(1 << 14);
  size_t complete = 0;
  for (size_t size = 1; size < 16000; size += size < 600 ? 1 : 37) {
    // Of exactly this size, so that a sanitizer sees what is beyond.
    std::vector<uint8_t> memory(size);
    ETDumpGen gen({memory.data(), memory.size()});
    ASSERT_TRUE(gen.set_debug_buffer({data.data(), data.size()}).ok());
    record_everything(gen, tensor);
    const bool has_blocks = gen.get_num_blocks() > 0;
    const Error error = gen.error();
    const Dump dump(gen);
    ASSERT_EQ(dump.valid(), has_blocks) << size;
    complete += error == Error::Ok ? 1 : 0;
  }
  EXPECT_GT(complete, 0u);
}

TEST(ETDumpGen, MemoryOfItsOwnGrows) {
  ETDumpGen gen;
  gen.create_event_block("Execute");
  for (int i = 0; i < 10000; ++i) {
    gen.end_profiling(gen.start_profiling(("op" + std::to_string(i % 300)).c_str(), 0,
                                          static_cast<runtime::DebugHandle>(i)));
  }
  const Dump dump(gen);
  ASSERT_TRUE(dump.valid());
  ASSERT_EQ(dump.run(0).events()->size(), 10000u);
  EXPECT_EQ(dump.profile(9999).instruction_id(), 9999);
  EXPECT_EQ(dump.profile(4321).name()->str(), "op121");
}

TEST(ETDumpGen, AStaticDumpLiesInTheMemoryGiven) {
  std::vector<uint8_t> memory(1000);
  ETDumpGen gen({memory.data(), memory.size()});
  gen.create_event_block("Execute");
  const ETDumpResult result = gen.get_etdump_data();
  const auto* start = static_cast<const uint8_t*>(result.buf);
  EXPECT_GE(start, memory.data());
  EXPECT_LE(start + result.size, memory.data() + memory.size());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(start) % 8, 0u);
}

TEST(ETDumpGen, OldNamesMeanTheSame) {
  torch::executor::ETDumpGen gen;
  gen.create_event_block("Default");
  const torch::executor::etdump_result result = gen.get_etdump_data();
  EXPECT_EQ(std::memcmp(static_cast<const char*>(result.buf) + 8, "ED00", 4), 0);
  std::free(result.buf);
}

}  // namespace
}  // namespace executorch::etdump
