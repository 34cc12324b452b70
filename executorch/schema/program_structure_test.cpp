// Beside the verifier that flatc generates, which is the oracle.
#include <executorch/schema/program_generated.h>
#include <executorch/schema/program_structure.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <random>
#include <vector>

namespace executorch::schema {
namespace {

namespace fb = executorch_flatbuffer;

template <typename T>
flatbuffers::Offset<flatbuffers::Vector<T>> items(flatbuffers::FlatBufferBuilder& b,
                                                  std::vector<T> v) {
  return b.CreateVector(v);
}
template <typename T>
auto tables(flatbuffers::FlatBufferBuilder& b, std::vector<flatbuffers::Offset<T>> v) {
  return b.CreateVector(v);
}

flatbuffers::Offset<fb::EValue> tensor(flatbuffers::FlatBufferBuilder& b) {
  const auto allocation = fb::CreateAllocationDetails(b, 1, 2, 3);
  const auto extra = fb::CreateExtraTensorInfo(
      b, 5, b.CreateString("name"), fb::TensorDataLocation::EXTERNAL, fb::DeviceType::CUDA, 1);
  const auto value = fb::CreateTensor(b, fb::ScalarType::FLOAT, 1, items<int32_t>(b, {2, 3}),
                                      items<uint8_t>(b, {0, 1}), true, 7, allocation, 1,
                                      fb::TensorShapeDynamism::DYNAMIC_BOUND, extra);
  return fb::CreateEValue(b, fb::KernelTypes::Tensor, value.Union());
}

auto values_of_all_kinds(flatbuffers::FlatBufferBuilder& b) {
  const auto value = [&](fb::KernelTypes type, auto table) {
    return fb::CreateEValue(b, type, table.Union());
  };
  using K = fb::KernelTypes;
  return tables<fb::EValue>(
      b, {value(K::Null, fb::CreateNull(b)), value(K::Int, fb::CreateInt(b, 9)),
          value(K::Bool, fb::CreateBool(b, true)), value(K::Double, fb::CreateDouble(b, 0.5)),
          tensor(b), value(K::String, fb::CreateString(b, b.CreateString("text"))),
          value(K::IntList, fb::CreateIntList(b, items<int64_t>(b, {1, 1}))),
          value(K::DoubleList, fb::CreateDoubleList(b, items<double>(b, {1.5}))),
          value(K::BoolList, fb::CreateBoolList(b, items<uint8_t>(b, {1}))),
          value(K::TensorList, fb::CreateTensorList(b, items<int32_t>(b, {4}))),
          value(K::OptionalTensorList, fb::CreateOptionalTensorList(b, items<int32_t>(b, {-1})))});
}

auto instructions_of_all_kinds(flatbuffers::FlatBufferBuilder& b) {
  const auto call = [&](fb::InstructionArguments type, auto table) {
    return fb::CreateInstruction(b, type, table.Union());
  };
  using I = fb::InstructionArguments;
  return tables<fb::Instruction>(
      b, {call(I::KernelCall, fb::CreateKernelCall(b, 1, items<int32_t>(b, {1, 2}))),
          call(I::DelegateCall, fb::CreateDelegateCall(b, 1, items<int32_t>(b, {3}))),
          call(I::MoveCall, fb::CreateMoveCall(b, 1, 2)),
          call(I::JumpFalseCall, fb::CreateJumpFalseCall(b, 2, 1)),
          call(I::FreeCall, fb::CreateFreeCall(b, 4))});
}

/// Every field of every table set, to what is not its default.
std::vector<uint8_t> complete_program() {
  flatbuffers::FlatBufferBuilder b;
  const auto values = values_of_all_kinds(b);
  const auto instructions = instructions_of_all_kinds(b);
  const auto frame = fb::CreateFrame(b, b.CreateString("file"), 3, b.CreateString("name"),
                                     b.CreateString("context"));
  const auto frames =
      tables<fb::FrameList>(b, {fb::CreateFrameList(b, tables<fb::Frame>(b, {frame, frame}))});
  const auto chain =
      fb::CreateChain(b, items<int32_t>(b, {1}), items<int32_t>(b, {2}), instructions, frames);
  const auto spec = fb::CreateCompileSpec(b, b.CreateString("key"), items<uint8_t>(b, {1, 2, 3}));
  const auto delegate = fb::CreateBackendDelegate(
      b, b.CreateString("id"),
      fb::CreateBackendDelegateDataReference(b, fb::DataLocation::SEGMENT, 1),
      tables<fb::CompileSpec>(b, {spec}));
  const auto op = fb::CreateOperator(b, b.CreateString("aten::add"), b.CreateString("out"));
  const auto plan = fb::CreateExecutionPlan(
      b, b.CreateString("forward"),
      fb::CreateContainerMetadata(b, b.CreateString("in"), b.CreateString("out")), values,
      items<int32_t>(b, {4}), items<int32_t>(b, {4}), tables<fb::Chain>(b, {chain}),
      tables<fb::Operator>(b, {op}), tables<fb::BackendDelegate>(b, {delegate}),
      items<int64_t>(b, {0, 64}),
      tables<fb::NonConstBufferDevice>(
          b, {fb::CreateNonConstBufferDevice(b, 1, fb::DeviceType::CUDA, 1)}));
  const auto subsegments = [&] {
    return fb::CreateSubsegmentOffsets(b, 1, items<uint64_t>(b, {8, 16}));
  };
  const auto constants = tables<fb::Buffer>(b, {fb::CreateBuffer(b, items<uint8_t>(b, {1, 2}))});
  const auto blobs = tables<fb::BackendDelegateInlineData>(
      b, {fb::CreateBackendDelegateInlineData(b, items<uint8_t>(b, {3, 4}))});
  const auto segments = tables<fb::DataSegment>(b, {fb::CreateDataSegment(b, 16, 32)});
  const auto constant_segment = subsegments();
  const auto mutable_segments = tables<fb::SubsegmentOffsets>(b, {subsegments()});
  const auto named =
      tables<fb::NamedData>(b, {fb::CreateNamedData(b, b.CreateString("weights"), 1)});
  fb::FinishProgramBuffer(
      b, fb::CreateProgram(b, 1, tables<fb::ExecutionPlan>(b, {plan}), constants, blobs, segments,
                           constant_segment, mutable_segments, named));
  return {b.GetBufferPointer(), b.GetBufferPointer() + b.GetSize()};
}

struct Verdicts {
  bool ours;
  bool generated;
};

/// In memory that ends where the program does, for sanitizers.
Verdicts verdicts_on(const std::vector<uint8_t>& bytes, uint32_t depth = 16,
                     uint32_t n_tables = 1000) {
  void* memory = nullptr;
  EXPECT_EQ(posix_memalign(&memory, 16, bytes.size()), 0);
  auto* const data = static_cast<uint8_t*>(memory);
  std::copy(bytes.begin(), bytes.end(), data);
  flatbuffers::Verifier verifier(data, bytes.size(), depth, n_tables);
  const Verdicts verdicts = {is_program_structure(data, bytes.size(), depth, n_tables),
                             verifier.VerifyBuffer<fb::Program>()};
  std::free(data);
  return verdicts;
}

TEST(ProgramStructure, AcceptsAProgramWithEveryField) {
  const auto program = complete_program();
  ASSERT_EQ(program.size() % 4, 0u);
  EXPECT_TRUE(verdicts_on(program).ours);
  EXPECT_TRUE(verdicts_on(program).generated);
}

TEST(ProgramStructure, RefusesEveryTruncation) {
  const auto program = complete_program();
  for (size_t size = 0; size < program.size(); ++size) {
    const Verdicts verdicts = verdicts_on({program.begin(), program.begin() + size});
    EXPECT_EQ(verdicts.ours, verdicts.generated) << size;
  }
}

TEST(ProgramStructure, CountsDepthAndTables) {
  const auto program = complete_program();
  int depths = 0, counts = 0;
  for (uint32_t n = 0; n < 100; ++n) {
    const Verdicts by_depth = verdicts_on(program, n), by_count = verdicts_on(program, 16, n);
    EXPECT_EQ(by_depth.ours, by_depth.generated) << n;
    EXPECT_EQ(by_count.ours, by_count.generated) << n;
    depths += by_depth.ours ? 1 : 0;
    counts += by_count.ours ? 1 : 0;
  }
  EXPECT_GT(depths, 0);
  EXPECT_LT(depths, 100);
  EXPECT_GT(counts, 0);
  EXPECT_LT(counts, 100);
}

class Comparison {
 public:
  void add(const std::vector<uint8_t>& bytes) {
    const Verdicts verdicts = verdicts_on(bytes);
    // The reverse does not hold: items on odd addresses and offsets of 0 are refused here.
    ASSERT_TRUE(verdicts.generated || !verdicts.ours);
    accepted_ += verdicts.ours ? 1 : 0;
    refused_ += verdicts.generated ? 0 : 1;
    stricter_ += verdicts.generated && !verdicts.ours ? 1 : 0;
  }
  void expect_alike() const {
    EXPECT_GT(accepted_, 1000);
    EXPECT_GT(refused_, 1000);
    EXPECT_LT(stricter_ * 100, accepted_ + refused_);
  }

 private:
  int accepted_ = 0, refused_ = 0, stricter_ = 0;
};

TEST(ProgramStructure, JudgesEveryChangeOfOneByteLikeTheGeneratedVerifier) {
  const auto program = complete_program();
  Comparison comparison;
  for (size_t i = 0; i < program.size(); ++i) {
    for (int delta = 1; delta < 256; delta += 7) {
      auto changed = program;
      changed[i] = static_cast<uint8_t>(changed[i] + delta);
      comparison.add(changed);
    }
  }
  comparison.expect_alike();
}

TEST(ProgramStructure, JudgesChangesOfWordsLikeTheGeneratedVerifier) {
  const auto program = complete_program();
  Comparison comparison;
  std::mt19937 random(1);
  const auto below = [&](size_t n) { return random() % n; };
  for (int round = 0; round < 50000; ++round) {
    auto changed = program;
    for (size_t n = 1 + below(3); n > 0; --n) {
      const size_t width = size_t{1} << below(3);
      const size_t at = below(changed.size() / width) * width;
      const uint32_t choices[] = {0,
                                  1,
                                  static_cast<uint32_t>(below(changed.size())),
                                  static_cast<uint32_t>(changed.size() - at),
                                  static_cast<uint32_t>(-static_cast<int32_t>(below(64))),
                                  0x7fffffffu,
                                  0x80000000u,
                                  static_cast<uint32_t>(random())};
      const uint32_t value = choices[below(std::size(choices))];
      std::memcpy(changed.data() + at, &value, width);
    }
    comparison.add(changed);
  }
  comparison.expect_alike();
}

TEST(ProgramStructure, RefusesItemsOnOddAddresses) {
  auto program = complete_program();
  const auto* value = fb::GetProgram(program.data())->execution_plan()->Get(0)->values()->Get(6);
  const auto* list = value->val_as_IntList();
  const auto* field =
      reinterpret_cast<const flatbuffers::Table*>(list)->GetAddressOf(fb::IntList::VT_ITEMS);
  // Four bytes later lies the first item, 1, which is taken for the count.
  program[static_cast<size_t>(field - program.data())] += 4;
  ASSERT_EQ(list->items()->size(), 1u);
  EXPECT_FALSE(verdicts_on(program).ours);
  EXPECT_TRUE(verdicts_on(program).generated);
}

}  // namespace
}  // namespace executorch::schema
