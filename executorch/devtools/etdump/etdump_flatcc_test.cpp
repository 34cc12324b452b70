#include <executorch/devtools/etdump/etdump_filter.h>
#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/devtools/etdump/testing.h>
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

using aten::ScalarType;
using aten::Tensor;
using runtime::Error;
using runtime::EValue;
using runtime::EventTracerEntry;
using runtime::kUnsetDelegateDebugIntId;
using runtime::LoggedEValueType;
using runtime::testing::TensorFactory;

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

TEST_P(ETDumpGenTest, WhatIsNotThereIsNotRecorded) {
  gen_.create_event_block(nullptr);
  EXPECT_EQ(gen_.track_allocator(nullptr), 0u);
  EXPECT_EQ(gen_.error(), Error::InvalidArgument);
  EXPECT_EQ(gen_.log_evalue(EValue(Tensor(nullptr))).error(), Error::InvalidState);
  const EventTracerEntry entry = gen_.start_profiling_delegate("op", kUnsetDelegateDebugIntId);
  gen_.end_profiling_delegate(entry, nullptr, 8);
  EXPECT_TRUE(Dump(gen_).valid());
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
