#include <executorch/runtime/executor/testing_util/loaded_method.h>

#include <thread>

namespace executorch::runtime {
namespace {

using testing::BytesLoader;
using testing::load_error;
using testing::LoadedMethod;
using testing::PlanBuilder;
using testing::ProgramBuilder;
using testing::TensorSpec;
using Type = DataLoader::SegmentInfo::Type;

std::vector<uint8_t> program_with_constants() {
  ProgramBuilder builder;
  builder.constants.push_back(ProgramBuilder::bytes<float>({1, 2, 3, 4}));
  builder.constants.push_back(ProgramBuilder::bytes<float>({5}));
  builder.named_data = {{"weights", {1, 2, 3}}, {"bias", {4}}};
  PlanBuilder& plan = builder.method();
  plan.outputs = {plan.tensor({.sizes = {4}, .data = 1})};
  return builder.build();
}

/// One method with one tensor: is it accepted?
Error tensor_error(const TensorSpec& spec, std::vector<int64_t> arenas = {0, 64}) {
  ProgramBuilder builder;
  builder.constants.push_back(std::vector<uint8_t>(16));
  PlanBuilder& plan = builder.method();
  plan.tensor(spec);
  plan.arenas = std::move(arenas);
  return load_error(builder.build());
}

/// One method, filled in by `fill`, with values 0: Int, 1: Bool, 2: Float [2], 3: Bool [2].
template <typename Fill>
Error plan_error(Fill fill) {
  ProgramBuilder builder;
  builder.constants.push_back(std::vector<uint8_t>(16));
  PlanBuilder& plan = builder.method();
  plan.integer(1);
  plan.boolean(true);
  plan.tensor({.sizes = {2}, .memory_id = 1});
  plan.tensor({.sizes = {2}, .memory_id = 1, .dtype = aten::ScalarType::Bool});
  plan.arenas = {0, 64};
  fill(plan);
  return load_error(builder.build());
}

TEST(Program, LoadingReadsNoSegment) {
  BytesLoader loader(program_with_constants());
  auto program = Program::load(&loader);
  ASSERT_TRUE(program.ok());
  for (const Type type : loader.loads) {
    EXPECT_EQ(type, Type::Program);
  }
  ASSERT_TRUE(program->get_constant_buffer_data(1, 16).ok());
  EXPECT_EQ(loader.loads.back(), Type::Constant);
  const size_t loads = loader.loads.size();
  ASSERT_TRUE(program->get_constant_buffer_data(2, 4).ok());
  EXPECT_EQ(loader.loads.size(), loads);  // one segment holds them all
}

// A loader that gives less than it is asked for, in its n-th load.
class ShortLoader final : public DataLoader {
 public:
  ShortLoader(std::vector<uint8_t> bytes, int which, size_t share)
      : whole_(std::move(bytes)), which_(which), share_(share) {}
  Result<FreeableBuffer> load(size_t offset, size_t size, const SegmentInfo& info) const override {
    return whole_.load(offset, n_++ == which_ ? size * share_ / 2 : size, info);
  }
  Result<size_t> size() const override { return whole_.size(); }

 private:
  BytesLoader whole_;
  int which_;
  size_t share_;  // in halves
  mutable int n_ = 0;
};

TEST(Program, LoadersThatGiveTooLittleAreRefused) {
  for (const size_t share : {0, 1}) {
    for (const int which : {0, 1}) {
      ShortLoader loader(program_with_constants(), which, share);
      EXPECT_EQ(Program::load(&loader).error(), Error::AccessFailed);
    }
    ShortLoader loader(program_with_constants(), 2, share);
    auto program = Program::load(&loader);
    ASSERT_TRUE(program.ok());
    EXPECT_EQ(program->get_constant_buffer_data(1, 16).error(), Error::AccessFailed);
    EXPECT_TRUE(program->get_constant_buffer_data(1, 16).ok());
  }
  EXPECT_EQ(Program::load(nullptr).error(), Error::InvalidArgument);
}

// A loader that gives no address in its n-th load.
class NullLoader final : public DataLoader {
 public:
  NullLoader(std::vector<uint8_t> bytes, int which) : whole_(std::move(bytes)), which_(which) {}
  Result<FreeableBuffer> load(size_t offset, size_t size, const SegmentInfo& info) const override {
    if (n_++ == which_) return FreeableBuffer(nullptr, size, nullptr);
    return whole_.load(offset, size, info);
  }
  Result<size_t> size() const override { return whole_.size(); }

 private:
  BytesLoader whole_;
  int which_;
  mutable int n_ = 0;
};

TEST(Program, LoadersThatGiveNoAddressAreRefused) {
  for (const int which : {0, 1}) {
    NullLoader loader(program_with_constants(), which);
    EXPECT_EQ(Program::load(&loader).error(), Error::AccessFailed);
  }
  NullLoader loader(program_with_constants(), 2);
  auto program = Program::load(&loader);
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->get_constant_buffer_data(1, 16).error(), Error::AccessFailed);
}

TEST(Program, ConstantsAreFoundAndTheirEndIsKept) {
  BytesLoader loader(program_with_constants());
  auto program = Program::load(&loader);
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(static_cast<const float*>(*program->get_constant_buffer_data(1, 16))[3], 4);
  EXPECT_EQ(static_cast<const float*>(*program->get_constant_buffer_data(2, 4))[0], 5);
  EXPECT_EQ(program->get_constant_buffer_data(2, 5).error(), Error::InvalidArgument);
  EXPECT_EQ(program->get_constant_buffer_data(3, 0).error(), Error::InvalidArgument);
}

TEST(Program, ConstantsMayBeAskedForByManyThreads) {
  BytesLoader loader(program_with_constants());
  auto program = Program::load(&loader);
  ASSERT_TRUE(program.ok());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_TRUE(program->get_constant_buffer_data(1, 16).ok()); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Program, NamedDataIsFoundByItsKey) {
  BytesLoader loader(program_with_constants());
  auto program = Program::load(&loader);
  auto map = program->get_named_data_map();
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(*(*map)->get_num_keys(), 2u);
  EXPECT_STREQ(*(*map)->get_key(1), "bias");
  auto data = (*map)->get_data("weights");
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(data->size(), 3u);
  EXPECT_EQ((*map)->get_data("other").error(), Error::NotFound);
  EXPECT_EQ((*map)->get_tensor_layout("bias").error(), Error::NotImplemented);
}

TEST(Program, MethodsAreListed) {
  BytesLoader loader(program_with_constants());
  auto program = Program::load(&loader);
  EXPECT_EQ(program->num_methods(), 1u);
  EXPECT_STREQ(*program->get_method_name(0), "forward");
  EXPECT_EQ(program->get_method_name(1).error(), Error::InvalidArgument);
  EXPECT_EQ(program->method_meta("other").error(), Error::InvalidArgument);
}

TEST(Program, ArrangementOfOutputsMayBeMissing) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  ProgramBuilder builder;
  builder.method();
  builder.method("plain").arranged = false;
  BytesLoader loader(builder.build());
  auto program = Program::load(&loader);
  ASSERT_TRUE(program.ok());
  EXPECT_STREQ(*program->get_output_flattening_encoding(), "outputs");
  EXPECT_EQ(program->get_output_flattening_encoding("plain").error(), Error::InvalidProgram);
  EXPECT_EQ(program->get_output_flattening_encoding("other").error(), Error::InvalidArgument);
#pragma GCC diagnostic pop
}

TEST(Program, HeaderProbeTellsProgramsFromOtherFiles) {
  std::vector<uint8_t> bytes = program_with_constants();
  EXPECT_EQ(Program::check_header(bytes.data(), bytes.size()), Program::CompatibleVersion);
  EXPECT_EQ(Program::check_header(bytes.data(), 63), Program::ShortData);
  EXPECT_EQ(Program::check_header(nullptr, 64), Program::ShortData);
  bytes[7] = '1';
  EXPECT_EQ(Program::check_header(bytes.data(), bytes.size()), Program::IncompatibleVersion);
  EXPECT_EQ(load_error(bytes), Error::InvalidProgram);
  bytes[4] = 'X';
  EXPECT_EQ(Program::check_header(bytes.data(), bytes.size()), Program::NotPresent);
  EXPECT_EQ(load_error(bytes), Error::InvalidProgram);
}

TEST(Program, EveryTruncationIsRefused) {
  const std::vector<uint8_t> bytes = program_with_constants();
  ASSERT_EQ(load_error(bytes), Error::Ok);
  for (size_t size = 0; size < bytes.size(); ++size) {
    const Error error = load_error({bytes.begin(), bytes.begin() + static_cast<long>(size)});
    EXPECT_EQ(error, size < 64 ? Error::InvalidArgument : Error::InvalidProgram) << size;
  }
}

TEST(Program, HeaderOfLength24LoadsAndOneOf23DoesNot) {
  std::vector<uint8_t> bytes = program_with_constants();
  bytes[12] = 24;
  EXPECT_EQ(load_error(bytes), Error::Ok);
  bytes[12] = 23;
  EXPECT_EQ(load_error(bytes), Error::InvalidProgram);
}

TEST(Program, LaterVersionsOfTheSchemaAreRefused) {
  ProgramBuilder builder;
  builder.method();
  builder.version = Program::kMaxSupportedSchemaVersion + 1;
  EXPECT_EQ(load_error(builder.build()), Error::InvalidProgram);
}

TEST(Program, FileWithoutSegmentsNeedsNoHeader) {
  flatbuffers::FlatBufferBuilder fbb;
  const std::vector<flatbuffers::Offset<executorch_flatbuffer::ExecutionPlan>> no_plans;
  const std::string filler(64, 'x');  // no file is shorter than a header
  const std::vector<flatbuffers::Offset<executorch_flatbuffer::NamedData>> none;
  fbb.CreateString(filler);
  executorch_flatbuffer::FinishProgramBuffer(
      fbb, executorch_flatbuffer::CreateProgramDirect(fbb, 0, &no_plans));
  EXPECT_EQ(load_error({fbb.GetBufferPointer(), fbb.GetBufferPointer() + fbb.GetSize()}),
            Error::Ok);
}

TEST(ProgramValidation, ShapesMustMakeSense) {
  EXPECT_EQ(tensor_error({.sizes = {}}), Error::Ok);
  EXPECT_EQ(tensor_error({.sizes = {0, 3}}), Error::Ok);
  EXPECT_EQ(tensor_error({.sizes = {-1}}), Error::InvalidProgram);
  EXPECT_EQ(tensor_error({.sizes = std::vector<int32_t>(16, 1)}), Error::Ok);
  EXPECT_EQ(tensor_error({.sizes = std::vector<int32_t>(17, 1)}), Error::InvalidProgram);
  EXPECT_EQ(tensor_error({.sizes = {INT32_MAX, INT32_MAX, 4}}), Error::InvalidProgram);
  EXPECT_EQ(tensor_error({.sizes = {0, INT32_MAX, INT32_MAX, INT32_MAX}}), Error::InvalidProgram);
  EXPECT_EQ(tensor_error({.sizes = {INT32_MAX, INT32_MAX, 4}, .dynamism = 1}), Error::Ok);
  EXPECT_EQ(tensor_error({.sizes = {2, 3}, .dim_order = {1, 0}}), Error::Ok);
  EXPECT_EQ(tensor_error({.sizes = {2, 3}, .dim_order = {1, 1}}), Error::InvalidProgram);
  EXPECT_EQ(tensor_error({.sizes = {2, 3}, .dim_order = {0, 2}}), Error::InvalidProgram);
  EXPECT_EQ(tensor_error({.sizes = {2, 3}, .dim_order = {0}}), Error::InvalidProgram);
}

TEST(ProgramValidation, TensorEnumsMustBeKnown) {
  EXPECT_EQ(tensor_error({.sizes = {1}, .dtype = static_cast<aten::ScalarType>(30)}),
            Error::InvalidProgram);
  EXPECT_EQ(tensor_error({.sizes = {1}, .dtype = static_cast<aten::ScalarType>(-1)}),
            Error::InvalidProgram);
  EXPECT_EQ(tensor_error({.sizes = {1}, .dynamism = 3}), Error::InvalidProgram);
  EXPECT_EQ(tensor_error({.sizes = {1}, .layout = 1}), Error::InvalidProgram);
  EXPECT_EQ(tensor_error({.sizes = {1}, .storage_offset = 1}), Error::InvalidProgram);
}

TEST(ProgramValidation, TensorsStayInTheirMemory) {
  EXPECT_EQ(tensor_error({.sizes = {4}, .memory_id = 1, .offset = 48}), Error::Ok);
  EXPECT_EQ(tensor_error({.sizes = {4}, .memory_id = 1, .offset = 52}), Error::InvalidProgram);
  EXPECT_EQ(tensor_error({.sizes = {4}, .memory_id = 1, .offset = UINT64_MAX - 3}),
            Error::InvalidProgram);
  EXPECT_EQ(tensor_error({.sizes = {4}, .memory_id = 2}), Error::InvalidProgram);
  EXPECT_EQ(tensor_error({.sizes = {4}, .data = 1}), Error::Ok);
  EXPECT_EQ(tensor_error({.sizes = {5}, .data = 1}), Error::InvalidProgram);
  EXPECT_EQ(tensor_error({.sizes = {4}, .data = 2}), Error::InvalidProgram);
  EXPECT_EQ(tensor_error({.sizes = {1}, .memory_id = 1, .data = 1}), Error::InvalidProgram);
  EXPECT_EQ(tensor_error({.sizes = {1}, .external = true}), Error::InvalidProgram);
  EXPECT_EQ(tensor_error({.sizes = {1}}, {4, 64}), Error::InvalidProgram);
  EXPECT_EQ(tensor_error({.sizes = {1}}, {0, -1}), Error::InvalidProgram);
}

TEST(ProgramValidation, ListItemsMustBeThereAndOfTheirType) {
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.integers({0}); }), Error::Ok);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.integers({9}); }), Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.integers({-1}); }), Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.integers({1}); }), Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.tensors({2}); }), Error::Ok);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.tensors({0}); }), Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.tensors({-1}); }), Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.tensors({4}); }), Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) {
              p.tensors({5});  // a later value
              p.tensor({.sizes = {1}});
            }),
            Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.optional_tensors({-1, 2}); }), Error::Ok);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.optional_tensors({-2}); }), Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.optional_tensors({1}); }), Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.booleans({0, 1}); }), Error::Ok);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.booleans({2}); }), Error::InvalidProgram);
}

TEST(ProgramValidation, InputsAndOutputsMustBeValues) {
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.inputs = {0, 2}; }), Error::Ok);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.inputs = {4}; }), Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.inputs = {-1}; }), Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.outputs = {4}; }), Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.inputs = {p.integers({})}; }), Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.inputs = {p.tensor({.sizes = {1}, .data = 1})}; }),
            Error::InvalidProgram);
}

TEST(ProgramValidation, InstructionsMustReferToWhatThereIs) {
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.kernel("a::b", {0, 3}); }), Error::Ok);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.kernel("a::b", {4}); }), Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.kernel("a::b", {-1}); }), Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.kernel(std::string(99, 'x'), {}); }), Error::Ok);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.kernel(std::string(100, 'x'), {}); }),
            Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.call_delegate(0, {}); }), Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.move(2, 2); }), Error::Ok);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.move(0, 1); }), Error::Ok);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.move(0, 2); }), Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.move(2, 3); }), Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.move(0, 4); }), Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) {
              p.inputs = {0};
              p.move(1, 0);
            }),
            Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.jump_if_false(1, 1); }), Error::Ok);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.jump_if_false(3, 0); }), Error::Ok);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.jump_if_false(1, 2); }), Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.jump_if_false(1, -1); }), Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.jump_if_false(2, 0); }), Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.free(p.tensor({.sizes = {2}})); }), Error::Ok);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.free(2); }), Error::InvalidProgram);
  EXPECT_EQ(plan_error([](PlanBuilder& p) { p.free(0); }), Error::InvalidProgram);
}

TEST(ProgramValidation, UnboundedTensorIsRefusedWhenItsMethodIsLoaded) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  plan.tensor({.sizes = {1}, .dynamism = 2});
  LoadedMethod loaded(builder.build());
  EXPECT_EQ(loaded.error, Error::NotSupported);
}

}  // namespace
}  // namespace executorch::runtime
