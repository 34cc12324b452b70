#include <executorch/devtools/profiler/profile.h>
#include <executorch/devtools/profiler/work_rules.h>
#include <executorch/runtime/executor/testing_util/loaded_method.h>
#include <executorch/runtime/kernel/kernel_runtime_context.h>
#include <executorch/runtime/platform/platform.h>

#include <chrono>

namespace executorch::devtools {
namespace {

using runtime::EValue;
using runtime::Kernel;
using runtime::KernelRuntimeContext;
using runtime::Span;
using runtime::testing::LoadedMethod;
using runtime::testing::OwnedTensor;
using runtime::testing::PlanBuilder;
using runtime::testing::ProgramBuilder;

// A clock that moves on by a microsecond whenever it is read, so that times are known.
uint64_t now = 0;
et_timestamp_t read_clock() {
  return now += 1000;
}

void do_nothing(KernelRuntimeContext&, Span<EValue*>) {}

std::vector<Kernel> kernels(const std::vector<const char*>& names) {
  std::vector<Kernel> out;
  for (const char* name : names) out.emplace_back(name, do_nothing);
  return out;
}

/// x [2,3] times w [3,4], then an operator that nobody knows, [2,4] each.
std::vector<uint8_t> product_program() {
  ProgramBuilder builder;
  builder.constants.push_back(ProgramBuilder::bytes<float>(std::vector<float>(12)));
  PlanBuilder& plan = builder.method();
  const auto x = plan.tensor({.sizes = {2, 3}, .memory_id = 1});
  const auto w = plan.tensor({.sizes = {3, 4}, .data = 1});
  const auto y = plan.tensor({.sizes = {2, 4}, .memory_id = 1, .offset = 32});
  const auto z = plan.tensor({.sizes = {2, 4}, .memory_id = 1, .offset = 64});
  plan.kernel("aten::mm.out", {x, w, y, y});
  plan.kernel("my::op.out", {y, z, z});
  plan.inputs = {x};
  plan.outputs = {z};
  plan.arenas = {0, 96};
  return builder.build();
}

class ProfilerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    runtime::runtime_init();
    before_ = *runtime::get_pal_impl();
    runtime::PalImpl impl = before_;
    impl.current_ticks = read_clock;
    runtime::register_pal(impl);
    now = 0;
  }
  void TearDown() override { runtime::register_pal(before_); }

  static void set_input(runtime::Method& method) {
    OwnedTensor<float> x({2, 3}, std::vector<float>(6));
    ASSERT_EQ(method.set_input(x.value(), 0), runtime::Error::Ok);
  }

  static MethodWork count(LoadedMethod& loaded) {
    auto work = count_work(*loaded.method);
    EXPECT_TRUE(work.ok());
    return work.ok() ? *work : MethodWork{};
  }

  static Profile profile_product(Recorder& recorder, LoadedMethod& loaded, size_t n_runs) {
    std::vector<devtools::Run> runs;
    for (size_t i = 0; i < n_runs; ++i) {
      recorder.start_run();
      set_input(*loaded.method);
      EXPECT_EQ(loaded.method->execute(), runtime::Error::Ok);
      runs.push_back(recorder.run());
    }
    LoadedMethod counted(product_program(), "forward", nullptr, nullptr,
                         kernels({"aten::mm.out", "my::op.out"}));
    set_input(*counted.method);
    const MethodWork work = count(counted);
    return make_profile({.path = "product.pte",
                         .program = &*loaded.program,
                         .method = &*loaded.method,
                         .describe_rewritten = nullptr,
                         .work = &work,
                         .roofline = {1e9, 1e9, 1}},
                        runs);
  }

  runtime::PalImpl before_;
};

TEST_F(ProfilerTest, CountsTheWorkOfAProductFromItsShapes) {
  LoadedMethod loaded(product_program(), "forward", nullptr, nullptr,
                      kernels({"aten::mm.out", "my::op.out"}));
  set_input(*loaded.method);
  const MethodWork work = count(loaded);
  const Work& product = work.at({0, 0}).work;
  EXPECT_EQ(product.family, Family::Matmul);
  EXPECT_EQ(product.flop, 2 * 2 * 3 * 4);
  EXPECT_EQ(product.bytes(), 4 * (2 * 3 + 3 * 4 + 2 * 4));
  EXPECT_EQ(product.shapes, "Float[2,3] Float[3,4] -> Float[2,4]");
  const Work& unknown = work.at({0, 1}).work;
  EXPECT_EQ(unknown.family, Family::Other);
  EXPECT_EQ(unknown.flop, 0);
  EXPECT_EQ(unknown.bytes(), 4 * (8 + 8));
}

TEST_F(ProfilerTest, WhatSelectsReadsAsMuchAsItWrites) {
  ProgramBuilder builder;
  builder.constants.push_back(ProgramBuilder::bytes<float>(std::vector<float>(1000)));
  PlanBuilder& plan = builder.method();
  const auto table = plan.tensor({.sizes = {100, 10}, .data = 1});
  const auto y = plan.tensor({.sizes = {1, 10}, .memory_id = 1});
  plan.kernel("aten::slice_copy.Tensor_out", {table, y, y});
  plan.outputs = {y};
  plan.arenas = {0, 64};
  LoadedMethod loaded(builder.build(), "forward", nullptr, nullptr,
                      kernels({"aten::slice_copy.Tensor_out"}));
  EXPECT_EQ(count(loaded).at({0, 0}).work.bytes(), 2 * 4 * 10);
}

TEST_F(ProfilerTest, RulesAreThoseOfOperatorsRowsOrFamilies) {
  EXPECT_EQ(work_rule("aten::add.out").count, WorkRule::Count::Output);
  EXPECT_EQ(work_rule("aten::fill.Scalar_out").family, Family::Copy);  // its row's
  EXPECT_EQ(work_rule("aten::addmm.out").per, 1);                      // its row's
  EXPECT_EQ(work_rule("quantized_decomposed::mixed_mm.out").family, Family::Matmul);
  EXPECT_TRUE(work_rule("quantized_decomposed::embedding_4bit.dtype_out").selects);
  EXPECT_EQ(work_rule("executorch_prim::add.Scalar").family, Family::View);
  EXPECT_EQ(work_rule("aten::gcd.out").family, Family::Other);
  EXPECT_EQ(work_rule("my::unknown").family, Family::Other);
}

TEST_F(ProfilerTest, AFusedCallMovesOnlyWhatCrossesItsBorder) {
  const Work product{Family::Matmul, 100, {{0, 10}, {1, 20}}, {{2, 30}}, "product"};
  const Work view{Family::View, 0, {{2, 0}}, {{3, 0}}, ""};
  const Work sum{Family::Elementwise, 5, {{3, 30}, {0, 10}}, {{4, 30}}, "sum"};
  const Work fused = combine({&product, &view, &sum}, 4);
  EXPECT_EQ(fused.flop, 105);
  EXPECT_EQ(fused.bytes(), 10 + 20 + 30);
  EXPECT_EQ(fused.family, Family::Matmul);
}

TEST_F(ProfilerTest, ModulesAreNestedAsDeepAsAnybodyReads) {
  Profile profile;
  profile.instructions.resize(20000);
  for (size_t i = 0; i < profile.instructions.size(); ++i) {
    profile.instructions[i].module = "m" + std::to_string(i);
  }
  std::string deep = "a";
  for (int i = 0; i < 500000; ++i) deep += ".a";
  profile.instructions[0].module = deep;
  const auto groups = by_module(profile);
  EXPECT_EQ(groups.size(), 1 + 64 + 19999u);
  EXPECT_EQ(groups[64].depth, 64);
  EXPECT_EQ(groups[64].name.size(), deep.size() - 63 * 2);
}

TEST_F(ProfilerTest, ACallOfManyTensorsIsReadOnce) {
  std::vector<EValue> values(100000, EValue(aten::Tensor(nullptr)));
  aten::TensorImpl scalar(aten::ScalarType::Float, 0, nullptr);
  for (EValue& value : values) value = EValue(aten::Tensor(&scalar));
  std::vector<EValue*> args;
  for (EValue& value : values) args.push_back(&value);
  const auto start = std::chrono::steady_clock::now();
  const Work work =
      work_of_call("aten::cat.out", {args.data(), args.size()}, {values.data(), values.size()});
  EXPECT_EQ(work.reads.size(), values.size() - 1);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST_F(ProfilerTest, InstructionsAddUpToTheRun) {
  Recorder recorder;
  recorder.reserve(16, 16);
  LoadedMethod loaded(product_program(), "forward", &recorder, nullptr,
                      kernels({"aten::mm.out", "my::op.out"}));
  const Profile profile = profile_product(recorder, loaded, 5);
  // The clock is read when the run begins, at each instruction, and when it ends.
  EXPECT_DOUBLE_EQ(profile.seconds, 3e-6);
  ASSERT_EQ(profile.instructions.size(), 2u);
  EXPECT_DOUBLE_EQ(profile.instructions[0].seconds, 1e-6);
  EXPECT_DOUBLE_EQ(profile.coverage(), 2.0 / 3);
  EXPECT_EQ(profile.n_lost, 0u);
}

TEST_F(ProfilerTest, TextNamesOperatorsRatesAndLosses) {
  Recorder recorder;
  recorder.reserve(16, 16);
  LoadedMethod loaded(product_program(), "forward", &recorder, nullptr,
                      kernels({"aten::mm.out", "my::op.out"}));
  EXPECT_EQ(
      to_text(profile_product(recorder, loaded, 1)),
      "product.pte, method forward: 1 runs after 0 to warm up, 1 thread\n"
      "  3 us a run, the middle half's mean (fastest 3 us, median 3 us, slowest 3 us)\n"
      "  instructions account for 66.7 % of the method's wall time\n"
      "  this machine, just measured: reads 1.00 GB/s, multiplies and adds 1.00 GFLOP/s\n"
      "\n"
      "by operator                     calls  time   share         MB        GFLOP    GB/s  "
      "GFLOP/s  of roofline\n"
      "aten::mm.out                        1  1 us  33.3 %   0.000104  0.000000048   0.104   "
      "0.0480       10.4 %\n"
      "my::op.out                          1  1 us  33.3 %  0.0000640            -  0.0640        "
      "-        6.4 %\n"
      "(before the first instruction)         1 us  33.3 %          -            -       -        "
      "-            -\n"
      "\n"
      "largest losses: time above what the roofline allows\n"
      "  1. 936 ns of 1 us: my::op.out Float[2,4] -> Float[2,4], 1 call, memory allows 64 ns\n"
      "  2. 896 ns of 1 us: aten::mm.out Float[2,3] Float[3,4] -> Float[2,4], 1 call, memory "
      "allows 104 ns\n");
}

TEST_F(ProfilerTest, ARunThatDoesNotFitMakesRoomForTheNext) {
  Recorder recorder;
  LoadedMethod loaded(product_program(), "forward", &recorder, nullptr,
                      kernels({"aten::mm.out", "my::op.out"}));
  set_input(*loaded.method);
  recorder.start_run();
  ASSERT_EQ(loaded.method->execute(), runtime::Error::Ok);
  EXPECT_EQ(recorder.run().n_lost, 2u);
  recorder.start_run();
  ASSERT_EQ(loaded.method->execute(), runtime::Error::Ok);
  EXPECT_EQ(recorder.run().n_lost, 0u);
  EXPECT_EQ(recorder.run().steps.size(), 2u);
}

TEST_F(ProfilerTest, DelegatesOperationsAreKeptBelowTheirCall) {
  Recorder recorder;
  recorder.reserve(4, 4);
  recorder.start_run();
  recorder.set_chain_debug_handle(0, 7);
  const auto call = recorder.start_profiling("DELEGATE_CALL", -1, 0);
  recorder.log_profiling_delegate("Add #1", -1, 10, 20, nullptr, 0);
  const auto inner = recorder.start_profiling_delegate(nullptr, 5);
  recorder.end_profiling_delegate(inner, nullptr, 0);
  recorder.end_profiling(call);
  const auto& run = recorder.run();
  ASSERT_EQ(run.steps.size(), 1u);
  EXPECT_EQ(run.steps[0].instruction, 7u);
  ASSERT_EQ(run.nodes.size(), 2u);
  EXPECT_STREQ(run.nodes[0].name, "Add #1");
  EXPECT_EQ(run.nodes[0].end, 20u);
  EXPECT_EQ(run.nodes[1].id, 5);
  EXPECT_EQ(run.nodes[1].step, 0u);
}

TEST_F(ProfilerTest, WhatDelegatesAttachIsKeptInASurvey) {
  Recorder recorder;
  recorder.survey();
  recorder.start_run();
  recorder.set_chain_debug_handle(0, 7);
  const auto call = recorder.start_profiling("DELEGATE_CALL", -1, 0);
  recorder.log_profiling_delegate("Add #1", -1, 10, 20, "said", 4);
  recorder.end_profiling(call);
  ASSERT_EQ(recorder.run().nodes.size(), 1u);
  EXPECT_EQ(recorder.run().nodes[0].metadata, "said");
  EXPECT_EQ(recorder.run().n_lost, 0u);
}

TEST_F(ProfilerTest, ACallsWorkIsThatOfTheOperationsItReports) {
  LoadedMethod loaded(product_program(), "forward", nullptr, nullptr,
                      kernels({"aten::mm.out", "my::op.out"}));
  devtools::Run run;
  run.end = 100000;
  run.steps = {{0, 0, 0}, {0, 1, 10000}};
  run.nodes.push_back({1, -1, 20000, 50000, "Add #1", ""});
  MethodWork work;
  work[{0, 1}].nodes[{"Add #1", -1}] = {Family::Elementwise, 8, 96, false, "Float[2,4]"};
  const Profile profile = make_profile({.path = "product.pte",
                                        .program = &*loaded.program,
                                        .method = &*loaded.method,
                                        .describe_rewritten = nullptr,
                                        .work = &work,
                                        .roofline = {1e9, 1e9, 1}},
                                       {run});
  const ProfiledInstruction& call = profile.instructions.at(1);
  EXPECT_EQ(call.flop, 8);
  EXPECT_EQ(call.bytes, 96);
  ASSERT_EQ(call.nodes.size(), 2u);
  EXPECT_DOUBLE_EQ(call.nodes[0].seconds, 30e-6);
  EXPECT_EQ(call.nodes[1].op, "my::op.out, between operations");
  EXPECT_DOUBLE_EQ(call.nodes[1].seconds, 60e-6);
  const auto losses = largest_losses(profile, 1);
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_EQ(losses[0].name, "my::op.out, between operations");
}

TEST(Roofline, ProductsOfBytesAreBoundByTheirOwnRate) {
  const Roofline roofline = {.flops = 1e9, .bytes_per_second = 1e8, .threads = 1, .int8 = 4e9};
  ProfiledWork work;
  work.flop = 8e9;
  work.bytes = 3e8;
  EXPECT_DOUBLE_EQ(least_seconds(roofline, work), 8);
  work.int8 = true;
  EXPECT_DOUBLE_EQ(arithmetic_seconds(roofline, work), 2);
  EXPECT_DOUBLE_EQ(least_seconds(roofline, work), 3);
}

TEST_F(ProfilerTest, TraceNestsInstructionsInTheMethod) {
  Recorder recorder;
  recorder.reserve(16, 16);
  LoadedMethod loaded(product_program(), "forward", &recorder, nullptr,
                      kernels({"aten::mm.out", "my::op.out"}));
  const Json trace = to_trace(profile_product(recorder, loaded, 1));
  const Json& events = trace["traceEvents"];
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[2]["name"], "forward");
  EXPECT_EQ(events[2]["dur"], 3.0);
  EXPECT_EQ(events[3]["name"], "aten::mm.out");
  EXPECT_EQ(events[3]["ph"], "X");
  EXPECT_EQ(events[3]["ts"], 1.0);
  EXPECT_EQ(events[4]["dur"], 1.0);
}

TEST_F(ProfilerTest, TraceGivesOverlappingOperationsATrackEach) {
  LoadedMethod loaded(product_program(), "forward", nullptr, nullptr,
                      kernels({"aten::mm.out", "my::op.out"}));
  devtools::Run run;
  run.start = 1000;
  run.end = 101000;
  run.steps = {{0, 0, 1000}, {0, 1, 11000}};
  run.nodes.push_back({1, -1, 21000, 51000, "Add", ""});
  run.nodes.push_back({1, 7, 31000, 61000, "", ""});         // overlaps the end of Add
  run.nodes.push_back({1, -1, 41000, 45000, "Inside", ""});  // of Add
  run.nodes.push_back({1, -1, 5, 6, "Other clock", ""});
  const Profile profile = make_profile({.path = "product.pte", .method = &*loaded.method}, {run});
  const Json trace = to_trace(profile);
  std::string found;
  for (const Json& event : trace["traceEvents"]) {
    found += event["ph"].get<std::string>() + std::to_string(event["tid"].get<int>()) + " ";
    if (event["ph"] == "M") {
      found += event["args"]["name"].get<std::string>() + "\n";
    } else {
      found += event["name"].get<std::string>() + event["ts"].dump() + "\n";
    }
  }
  EXPECT_EQ(found,
            "M1 product.pte\nM1 forward\nX1 forward0.0\nX1 aten::mm.out0.0\nX1 my::op.out10.0\n"
            "X1 Add20.0\nM2 forward, at the same time\nX2 #730.0\nX1 Inside40.0\n");
}

}  // namespace
}  // namespace executorch::devtools
