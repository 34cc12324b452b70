#include <executorch/runtime/executor/debug_identity.h>
#include <executorch/runtime/executor/testing_util/loaded_method.h>
#include <executorch/runtime/platform/platform.h>
#include <executorch/schema/debug_identity_generated.h>

#include <string>

namespace executorch::runtime {
namespace {

namespace fb = executorch_flatbuffer;
using testing::LoadedMethod;
using testing::PlanBuilder;
using testing::ProgramBuilder;

// A method of three instructions; the second calls a delegate with a map.
std::vector<uint8_t> identity() {
  flatbuffers::FlatBufferBuilder fbb;
  const std::vector<std::string> strings = {
      "",        "test::fail",          "h.0.attn", "models/net.py",
      "Backend", "aten::mm+aten::relu", "gemm",     "tokens"};
  const std::vector<fb::Place> places = {{0, 0, 0}, {2, 3, 17}, {0, 3, 21}};
  const std::vector<fb::Origin> origins = {{1, 1}, {4, 2}, {1, 99}};
  const std::vector<fb::DelegatedOrigin> by_id = {{2, 5, 1}, {7, 1, 2}, {4000000000, 1, 1}};
  const std::vector<fb::DelegatedOrigin> by_name = {{6, 5, 1}};
  const std::vector<flatbuffers::Offset<fb::DelegateCallIdentity>> calls = {
      fb::CreateDelegateCallIdentityDirect(fbb, 1, &by_id, &by_name)};
  const std::vector<flatbuffers::Offset<fb::ChainIdentity>> chains = {
      fb::CreateChainIdentityDirect(fbb, &origins, &calls)};
  const std::vector<uint32_t> inputs = {7, 0, 99};
  const std::vector<uint32_t> outputs = {6};
  const std::vector<flatbuffers::Offset<fb::MethodIdentity>> methods = {
      fb::CreateMethodIdentityDirect(fbb, "forward", &chains, &inputs, &outputs, true)};
  const auto texts = fbb.CreateVectorOfStrings(strings);
  const auto place_list = fbb.CreateVectorOfStructs(places);
  const auto method_list = fbb.CreateVector(methods);
  fb::FinishDebugIdentityBuffer(fbb, fb::CreateDebugIdentity(fbb, texts, place_list, method_list));
  return {fbb.GetBufferPointer(), fbb.GetBufferPointer() + fbb.GetSize()};
}

// With so many methods, and a text of so many bytes.
Error check_of(size_t n_methods, size_t text_bytes) {
  flatbuffers::FlatBufferBuilder fbb;
  const auto texts =
      fbb.CreateVectorOfStrings(std::vector<std::string>{"", std::string(text_bytes, 'm')});
  const std::vector<flatbuffers::Offset<fb::MethodIdentity>> methods(
      n_methods, fb::CreateMethodIdentityDirect(fbb, "forward"));
  const auto method_list = fbb.CreateVector(methods);
  fb::FinishDebugIdentityBuffer(fbb, fb::CreateDebugIdentity(fbb, texts, 0, method_list));
  return DebugIdentity::check(fbb.GetBufferPointer(), fbb.GetSize());
}

std::vector<uint8_t> failing_program(std::vector<uint8_t> named) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  plan.kernel("test::fail", {plan.integer(5)});
  if (!named.empty()) builder.named_data.emplace_back(kDebugIdentityKey, std::move(named));
  return builder.build();
}

void fail(KernelRuntimeContext& context, Span<EValue*>) {
  context.fail(Error::InvalidArgument);
}

LoadedMethod load(std::vector<uint8_t> bytes) {
  return LoadedMethod(std::move(bytes), "forward", nullptr, nullptr, {Kernel("test::fail", fail)});
}

std::string logged;

void append_log(et_timestamp_t, et_pal_log_level_t, const char*, const char*, size_t,
                const char* message, size_t length) {
  logged.append(message, length).append("\n");
}

/// What is logged while `run` runs.
template <typename F>
std::string log_of(F&& run) {
  const PalImpl before = *get_pal_impl();
  register_pal(PalImpl::create(append_log, __FILE__));
  logged.clear();
  run();
  register_pal(before);
  return logged;
}

void expect_origin(const InstructionOrigin& origin, const char* op, const char* module_path,
                   const char* file, uint32_t line) {
  EXPECT_STREQ(origin.op, op);
  EXPECT_STREQ(origin.module_path, module_path);
  EXPECT_STREQ(origin.file, file);
  EXPECT_EQ(origin.line, line);
}

TEST(DebugIdentity, MethodsAndTextsAreBounded) {
  EXPECT_EQ(check_of(4096, 4096), Error::Ok);
  EXPECT_EQ(check_of(4097, 4096), Error::InvalidProgram);
  EXPECT_EQ(check_of(4096, 4097), Error::InvalidProgram);
}

TEST(DebugIdentity, NamesTheOriginsOfInstructions) {
  auto loaded = load(failing_program(identity()));
  ASSERT_EQ(loaded.error, Error::Ok);
  InstructionOrigin origin;
  ASSERT_TRUE(loaded.method->instruction_origin(0, 0, origin));
  expect_origin(origin, "test::fail", "h.0.attn", "models/net.py", 17);
  ASSERT_TRUE(loaded.method->instruction_origin(0, 1, origin));
  expect_origin(origin, "Backend", "", "models/net.py", 21);
}

TEST(DebugIdentity, IsNotReadWhileAMethodIsLoadedAndRun) {
  auto loaded = load(failing_program(identity()));
  for (const auto type : loaded.loader.loads) {
    EXPECT_EQ(type, DataLoader::SegmentInfo::Type::Program);
  }
}

TEST(DebugIdentity, PlacesThatDoNotExistAreUnknown) {
  auto loaded = load(failing_program(identity()));
  InstructionOrigin origin;
  ASSERT_TRUE(loaded.method->instruction_origin(0, 2, origin));
  expect_origin(origin, "test::fail", "", "", 0);
  EXPECT_FALSE(loaded.method->instruction_origin(0, 3, origin));
  EXPECT_FALSE(loaded.method->instruction_origin(1, 0, origin));
  EXPECT_FALSE(loaded.method->instruction_origin(SIZE_MAX, SIZE_MAX, origin));
  expect_origin(origin, "test::fail", "", "", 0);
}

TEST(DebugIdentity, NamesOperatorsInsideDelegates) {
  const auto bytes = identity();
  ASSERT_EQ(DebugIdentity::check(bytes.data(), bytes.size()), Error::Ok);
  const DebugIdentity given(bytes.data());
  InstructionOrigin origin;
  ASSERT_TRUE(given.delegated("forward", 0, 1, 2u, origin));
  expect_origin(origin, "aten::mm+aten::relu", "h.0.attn", "models/net.py", 17);
  EXPECT_TRUE(given.delegated("forward", 0, 1, 7u, origin));
  EXPECT_TRUE(given.delegated("forward", 0, 1, 4000000000u, origin));
  EXPECT_TRUE(given.delegated("forward", 0, 1, "gemm", origin));
  expect_origin(origin, "aten::mm+aten::relu", "h.0.attn", "models/net.py", 17);
  EXPECT_FALSE(given.delegated("forward", 0, 1, 3u, origin));
  EXPECT_FALSE(given.delegated("forward", 0, 1, "conv", origin));
  EXPECT_FALSE(given.delegated("forward", 0, 0, 2u, origin));
  EXPECT_FALSE(given.delegated("backward", 0, 1, 2u, origin));
}

TEST(DebugIdentity, NamesInputsAndOutputs) {
  const auto bytes = identity();
  const DebugIdentity given(bytes.data());
  EXPECT_STREQ(given.input_name("forward", 0), "tokens");
  EXPECT_STREQ(given.input_name("forward", 1), "");  // not known
  EXPECT_STREQ(given.input_name("forward", 2), "");  // beyond the texts
  EXPECT_STREQ(given.input_name("forward", SIZE_MAX), "");
  EXPECT_STREQ(given.input_name("backward", 0), "");
  EXPECT_STREQ(given.output_name("forward", 0), "gemm");
  EXPECT_STREQ(given.output_name("forward", 1), "");
  EXPECT_TRUE(given.is_stateless("forward"));
  EXPECT_FALSE(given.is_stateless("backward"));
}

TEST(DebugIdentity, ArgumentsInMessages) {
  EXPECT_STREQ(ArgumentText("input", 3, "").text, "input 3");
  EXPECT_STREQ(ArgumentText("output", 0, "logits").text, "output 0 (logits)");
  const std::string longest = ArgumentText("input", SIZE_MAX, std::string(4096, 'x').c_str()).text;
  EXPECT_EQ(longest.substr(longest.size() - 3), "xx)");
}

TEST(DebugIdentity, ErrorsOfInputsNameThem) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  plan.inputs = {plan.tensor({{2}})};
  builder.named_data.emplace_back(kDebugIdentityKey, identity());
  auto loaded = load(builder.build());
  ASSERT_EQ(loaded.error, Error::Ok);
  EXPECT_STREQ(loaded.method->input_name(0), "tokens");
  EXPECT_STREQ(loaded.method->output_name(0), "gemm");
  const std::string log = log_of([&] {
    EXPECT_EQ(loaded.method->set_input(EValue(int64_t{1}), 0), Error::InvalidArgument);
    EXPECT_EQ(loaded.method->execute(), Error::InvalidArgument);
  });
  EXPECT_NE(log.find("forward: input 0 (tokens) is a Int, expected Tensor"), std::string::npos)
      << log;
  EXPECT_NE(log.find("forward: input 0 (tokens) of 1 has not been set"), std::string::npos) << log;
}

TEST(DebugIdentity, AProgramWithoutOneSaysSo) {
  auto loaded = load(failing_program({}));
  ASSERT_EQ(loaded.error, Error::Ok);
  EXPECT_EQ(loaded.program->debug_identity().error(), Error::NotFound);
  InstructionOrigin origin;
  EXPECT_FALSE(loaded.method->instruction_origin(0, 0, origin));
}

TEST(DebugIdentity, MalformedBytesAreRefusedOnceWithAMessage) {
  auto loaded = load(failing_program({1, 2, 3, 4, 5}));
  ASSERT_EQ(loaded.error, Error::Ok);
  const std::string log = log_of([&] {
    EXPECT_EQ(loaded.program->debug_identity().error(), Error::InvalidProgram);
    EXPECT_EQ(loaded.program->debug_identity().error(), Error::InvalidProgram);
  });
  EXPECT_NE(log.find("executorch.debug_identity: its 5 bytes"), std::string::npos) << log;
  EXPECT_EQ(log.find('\n'), log.size() - 1) << log;
}

TEST(DebugIdentity, NoChangedByteLeadsOutOfIt) {
  const auto given = identity();
  log_of([&] {
    for (size_t i = 0; i < given.size(); ++i) {
      for (const uint8_t value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
        // Exactly as many bytes as there are, so that sanitizers see reads beyond.
        const std::vector<uint8_t> start(given.begin(), given.begin() + static_cast<long>(i));
        EXPECT_NE(DebugIdentity::check(start.data(), start.size()), Error::Ok);
        std::vector<uint8_t> bytes(given);
        bytes[i] = value;
        if (DebugIdentity::check(bytes.data(), bytes.size()) != Error::Ok) continue;
        const DebugIdentity changed(bytes.data());
        InstructionOrigin origin;
        size_t length = 0;
        for (size_t n = 0; n < 4; ++n) {
          changed.instruction("forward", 0, n, origin);
          length += std::string(origin.op).size() + std::string(origin.file).size();
          changed.delegated("forward", 0, n, 7u, origin);
          changed.delegated("forward", 0, n, "gemm", origin);
          length += std::string(origin.module_path).size();
          length += std::string(changed.input_name("forward", n)).size();
          length += std::string(changed.output_name("forward", n)).size();
        }
        EXPECT_LT(length, 20 * given.size());
      }
    }
  });
}

TEST(DebugIdentity, ErrorsOfInstructionsNameThePlace) {
  auto loaded = load(failing_program(identity()));
  const std::string log =
      log_of([&] { EXPECT_EQ(loaded.method->execute(), Error::InvalidArgument); });
  EXPECT_NE(log.find("instruction 0, test::fail, failed"), std::string::npos) << log;
  EXPECT_NE(log.find("it comes from models/net.py:17, module h.0.attn\n"), std::string::npos)
      << log;
}

TEST(DebugIdentity, MissingKernelsAreNamedOnceWithTheirFirstPlace) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  const int32_t five = plan.integer(5);
  for (int i = 0; i < 3; ++i) {
    plan.kernel("test::absent.out", {five});
    plan.kernel("test::fail", {five});
  }
  builder.named_data.emplace_back(kDebugIdentityKey, identity());
  const auto bytes = builder.build();
  const std::string log = log_of([&] { EXPECT_EQ(load(bytes).error, Error::OperatorMissing); });
  EXPECT_EQ(
      log,
      "forward: no kernel is registered for the arguments of 1 operators:\n"
      "  test::absent.out, calls: 3, the first is instruction 0, from models/net.py:17, module "
      "h.0.attn\n");
}

TEST(DebugIdentity, ErrorsOfFusedInstructionsNameTheOneThatFailed) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  const int32_t five = plan.integer(5);
  plan.kernel("test::fail", {five});
  plan.kernel("test::fuse", {five});
  builder.named_data.emplace_back(kDebugIdentityKey, identity());
  const auto fused = [](KernelRuntimeContext& context, Span<EValue*> args) {
    context.set_failed_instruction(0, args);
    context.fail(Error::InvalidArgument);
  };
  LoadedMethod loaded(builder.build(), "forward", nullptr, nullptr,
                      {Kernel("test::fail", [](KernelRuntimeContext&, Span<EValue*>) {}),
                       Kernel("test::fuse", OpFunction(fused))});
  ASSERT_EQ(loaded.error, Error::Ok);
  const std::string log =
      log_of([&] { EXPECT_EQ(loaded.method->execute(), Error::InvalidArgument); });
  EXPECT_NE(log.find("instruction 0, test::fail, failed"), std::string::npos) << log;
  EXPECT_NE(log.find("models/net.py:17"), std::string::npos) << log;
}

}  // namespace
}  // namespace executorch::runtime
