#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/executor/testing_util/loaded_method.h>

#include <limits>

namespace executorch::runtime {
namespace {

using aten::ScalarType;
using testing::LoadedMethod;
using testing::OwnedTensor;
using testing::PlanBuilder;
using testing::ProgramBuilder;
using Floats = std::vector<float>;

constexpr int8_t kDynamic = 1;

// out = a + b, elementwise; out takes a's shape.
void add(KernelRuntimeContext& context, Span<EValue*> args) {
  const aten::Tensor& a = args[0]->toTensor();
  const aten::Tensor& b = args[1]->toTensor();
  const aten::Tensor& out = args[2]->toTensor();
  if (a.numel() != b.numel()) {
    context.fail(Error::InvalidArgument);
    return;
  }
  if (resize_tensor(out, a.sizes()) != Error::Ok) {
    context.fail(Error::InvalidArgument);
    return;
  }
  for (ssize_t i = 0; i < a.numel(); ++i) {
    out.mutable_data_ptr<float>()[i] = a.const_data_ptr<float>()[i] + b.const_data_ptr<float>()[i];
  }
}

// out = sum of all elements of all tensors of a list and of an optional list, times the integers.
void sum_lists(KernelRuntimeContext&, Span<EValue*> args) {
  float sum = 0;
  for (const aten::Tensor& tensor : args[0]->toTensorList()) {
    for (ssize_t i = 0; i < tensor.numel(); ++i) sum += tensor.const_data_ptr<float>()[i];
  }
  for (const auto& tensor : args[1]->toListOptionalTensor()) {
    sum += tensor.has_value() ? static_cast<float>(tensor->numel()) : 100;
  }
  for (const int64_t item : args[2]->toIntList()) sum *= static_cast<float>(item);
  for (const double item : args[3]->toDoubleList()) sum += static_cast<float>(item);
  for (const bool item : args[4]->toBoolList()) sum += item ? 1000 : 0;
  sum += static_cast<float>(args[5]->toString().size());
  args[6]->toTensor().mutable_data_ptr<float>()[0] = sum;
}

// Int and Bool arithmetic on values.
void increment(KernelRuntimeContext&, Span<EValue*> args) {
  *args[1] = EValue(args[0]->toInt() + 1);
}
void at_least(KernelRuntimeContext&, Span<EValue*> args) {
  *args[2] = EValue(args[0]->toInt() >= args[1]->toInt());
}
// The result borrows the operand's bytes.
void view(KernelRuntimeContext&, Span<EValue*> args) {
  args[2]->toTensor().unsafeGetTensorImpl()->set_data(args[0]->toTensor().mutable_data_ptr());
}
void fail(KernelRuntimeContext& context, Span<EValue*>) {
  context.fail(Error::NotSupported);
}

const std::vector<Kernel> kKernels = {
    Kernel("test::add.out", add),         Kernel("test::sum_lists", sum_lists),
    Kernel("test::increment", increment), Kernel("test::at_least", at_least),
    Kernel("test::fail", fail),           Kernel("executorch_prim::et_view.default", view),
};

LoadedMethod load(ProgramBuilder& builder, const char* name = "forward") {
  return LoadedMethod(builder.build(), name, nullptr, nullptr, kKernels);
}

// forward(x[2,3]) = x + constant {1..6}; everything planned; x is dynamic in dimension 0.
void add_constant(ProgramBuilder& builder, int8_t dynamism, bool planned) {
  builder.constants.push_back(ProgramBuilder::bytes<float>({1, 2, 3, 4, 5, 6}));
  PlanBuilder& plan = builder.method();
  const uint32_t memory = planned ? 1 : 0;
  const int32_t constant = plan.tensor({.sizes = {2, 3}, .data = 1});
  const int32_t x = plan.tensor({.sizes = {2, 3}, .memory_id = memory, .dynamism = dynamism});
  const int32_t out = plan.tensor(
      {.sizes = {2, 3}, .memory_id = memory, .offset = planned ? 32u : 0u, .dynamism = dynamism});
  plan.kernel("test::add.out", {x, constant, out, out});
  plan.inputs = {x};
  plan.outputs = {out};
  plan.arenas = {0, 64};
}

LoadedMethod load_adder(int8_t dynamism = kDynamic, bool planned = true) {
  ProgramBuilder builder;
  add_constant(builder, dynamism, planned);
  return load(builder);
}

TEST(Method, RunsAKernelOnAConstantAndAPlannedInput) {
  LoadedMethod loaded = load_adder();
  ASSERT_EQ(loaded.error, Error::Ok);
  OwnedTensor<float> x({2, 3}, {10, 20, 30, 40, 50, 60});
  ASSERT_EQ(loaded.method->set_input(x.value(), 0), Error::Ok);
  x.data().assign(6, 0);  // the input was copied
  ASSERT_EQ(loaded.method->execute(), Error::Ok);
  EXPECT_EQ(loaded.output(), (Floats{11, 22, 33, 44, 55, 66}));
  ASSERT_EQ(loaded.method->execute(), Error::Ok);
  EXPECT_EQ(loaded.output(), (Floats{11, 22, 33, 44, 55, 66}));
}

TEST(Method, InlineConstantsOfOldProgramsAreFound) {
  ProgramBuilder builder;
  builder.constants_inline = true;
  add_constant(builder, kDynamic, true);
  LoadedMethod loaded = load(builder);
  ASSERT_EQ(loaded.error, Error::Ok);
  OwnedTensor<float> x({2, 3}, Floats(6, 0));
  ASSERT_EQ(loaded.method->set_input(x.value(), 0), Error::Ok);
  ASSERT_EQ(loaded.method->execute(), Error::Ok);
  EXPECT_EQ(loaded.output(), (Floats{1, 2, 3, 4, 5, 6}));
}

TEST(Method, UnplannedInputsAndOutputsUseTheCallersMemory) {
  LoadedMethod loaded = load_adder(0, false);
  ASSERT_EQ(loaded.error, Error::Ok);
  OwnedTensor<float> x({2, 3}, Floats(6, 1));
  ASSERT_EQ(loaded.method->set_input(x.value(), 0), Error::Ok);
  EXPECT_EQ(loaded.method->execute(), Error::InvalidState);  // the output has no memory
  Floats out(6);
  EXPECT_EQ(loaded.method->set_output_data_ptr(out.data(), 23, 0), Error::InvalidArgument);
  ASSERT_EQ(loaded.method->set_output_data_ptr(out.data(), 24, 0), Error::Ok);
  x.data()[0] = 100;  // seen: the input is used where it lies
  ASSERT_EQ(loaded.method->execute(), Error::Ok);
  EXPECT_EQ(out, (Floats{101, 3, 4, 5, 6, 7}));
}

TEST(Method, PlannedOutputKeepsItsMemory) {
  LoadedMethod loaded = load_adder();
  Floats out(6);
  EXPECT_EQ(loaded.method->set_output_data_ptr(out.data(), 24, 0), Error::InvalidState);
  EXPECT_EQ(loaded.method->set_output_data_ptr(out.data(), 24, 1), Error::InvalidArgument);
}

TEST(Method, DynamicInputTakesAnyShapeUpToItsBound) {
  LoadedMethod loaded = load_adder();
  OwnedTensor<float> small({1, 3}, {1, 1, 1});
  ASSERT_EQ(loaded.method->set_input(small.value(), 0), Error::Ok);
  EXPECT_EQ(loaded.method->execute(), Error::InvalidArgument);  // 3 + 6 elements: the kernel's word
  OwnedTensor<float> full({2, 3}, Floats(6, 2));
  ASSERT_EQ(loaded.method->set_input(full.value(), 0), Error::Ok);  // grows again
  ASSERT_EQ(loaded.method->execute(), Error::Ok);
  EXPECT_EQ(loaded.output(), (Floats{3, 4, 5, 6, 7, 8}));
}

TEST(Method, WrongInputsAreRefusedAndLeaveTheOldOnes) {
  LoadedMethod loaded = load_adder();
  Method& method = *loaded.method;
  EXPECT_EQ(method.execute(), Error::InvalidArgument);  // never set
  OwnedTensor<float> good({2, 3}, Floats(6, 1));
  ASSERT_EQ(method.set_input(good.value(), 0), Error::Ok);
  OwnedTensor<float> too_large({3, 3}, Floats(9, 7));
  OwnedTensor<float> other_rank({6}, Floats(6, 7));
  OwnedTensor<int32_t> other_type({2, 3}, std::vector<int32_t>(6, 7), ScalarType::Int);
  EXPECT_EQ(method.set_input(too_large.value(), 0), Error::InvalidArgument);
  EXPECT_EQ(method.set_input(other_rank.value(), 0), Error::InvalidArgument);
  EXPECT_EQ(method.set_input(other_type.value(), 0), Error::InvalidArgument);
  EXPECT_EQ(method.set_input(EValue(int64_t{1}), 0), Error::InvalidArgument);
  EXPECT_EQ(method.set_input(good.value(), 1), Error::InvalidArgument);
  const EValue two[] = {good.value(), good.value()};
  EXPECT_EQ(method.set_inputs({two, 2}), Error::InvalidArgument);
  ASSERT_EQ(method.execute(), Error::Ok);
  EXPECT_EQ(loaded.output(), (Floats{2, 3, 4, 5, 6, 7}));
}

TEST(Method, InputInAnotherDimOrderIsRefusedUnlessItLiesAlike) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  const int32_t x =
      plan.tensor({.sizes = {2, 3}, .memory_id = 1, .dynamism = kDynamic, .dim_order = {1, 0}});
  plan.inputs = {x};
  plan.outputs = {x};
  plan.arenas = {0, 24};
  LoadedMethod loaded = load(builder);
  OwnedTensor<float> contiguous({2, 3}, Floats(6));
  OwnedTensor<float> row({1, 3}, Floats(3));
  EXPECT_EQ(loaded.method->set_input(contiguous.value(), 0), Error::InvalidArgument);
  EXPECT_EQ(loaded.method->set_input(row.value(), 0), Error::Ok);
}

TEST(Method, NumbersMustBeThoseOfTheExport) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  plan.inputs = {plan.integer(3),  plan.boolean(true),    plan.number(100.0), plan.none(),
                 plan.number(nan), plan.number(infinity), plan.text("abc")};
  LoadedMethod loaded = load(builder);
  Method& method = *loaded.method;
  EXPECT_EQ(method.execute(), Error::Ok);  // they are known without being set
  EXPECT_EQ(method.set_input(EValue(int64_t{3}), 0), Error::Ok);
  EXPECT_EQ(method.set_input(EValue(int64_t{4}), 0), Error::InvalidArgument);
  EXPECT_EQ(method.set_input(EValue(true), 1), Error::Ok);
  EXPECT_EQ(method.set_input(EValue(false), 1), Error::InvalidArgument);
  EXPECT_EQ(method.set_input(EValue(100.0 + 0.0010), 2), Error::Ok);  // within 1e-4 + 1e-5 * 100
  EXPECT_EQ(method.set_input(EValue(100.0 + 0.0012), 2), Error::InvalidArgument);
  EXPECT_EQ(method.set_input(EValue(), 3), Error::Ok);
  EXPECT_EQ(method.set_input(EValue(1.0), 3), Error::InvalidArgument);
  EXPECT_EQ(method.set_input(EValue(nan), 4), Error::Ok);
  EXPECT_EQ(method.set_input(EValue(1.0), 4), Error::InvalidArgument);
  EXPECT_EQ(method.set_input(EValue(infinity), 5), Error::Ok);
  EXPECT_EQ(method.set_input(EValue(-infinity), 5), Error::InvalidArgument);
  const char text[] = "other";
  aten::ArrayRef<char> string(text, 5);
  EXPECT_EQ(method.set_input(EValue(&string), 6), Error::Ok);
}

TEST(Method, ListsOfEveryKindReachTheKernel) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  builder.constants.push_back(ProgramBuilder::bytes<float>({1, 2}));
  const int32_t constant = plan.tensor({.sizes = {2}, .data = 1});
  const int32_t null = plan.none();
  const int32_t items = plan.integers({8, 9});  // integer items may come later
  const int32_t list = plan.tensors({constant, constant});
  const int32_t optional = plan.optional_tensors({-1, null, constant});
  const int32_t doubles = plan.numbers({0.5, 0.25});
  const int32_t booleans = plan.booleans({1, 0});
  const int32_t text = plan.text("four");
  ASSERT_EQ(plan.integer(2), 8);
  ASSERT_EQ(plan.integer(3), 9);
  const int32_t out = plan.tensor({.sizes = {1}, .memory_id = 1});
  plan.kernel("test::sum_lists", {list, optional, items, doubles, booleans, text, out});
  plan.outputs = {out};
  plan.arenas = {0, 16};
  LoadedMethod loaded = load(builder);
  ASSERT_EQ(loaded.error, Error::Ok);
  ASSERT_EQ(loaded.method->execute(), Error::Ok);
  EXPECT_EQ(loaded.output(), (Floats{(6 + 202) * 6 + 0.75f + 1000 + 4}));
}

TEST(Method, LoopRunsUntilItsConditionHolds) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  const int32_t i = plan.integer(0);
  const int32_t end = plan.integer(5);
  const int32_t done = plan.boolean(false);
  plan.kernel("test::increment", {i, i});
  plan.kernel("test::at_least", {i, end, done});
  plan.jump_if_false(done, 0);
  plan.outputs = {i, done};
  LoadedMethod loaded = load(builder);
  ASSERT_EQ(loaded.method->execute(), Error::Ok);
  EXPECT_EQ(loaded.method->get_output(0).toInt(), 5);
  EXPECT_TRUE(loaded.method->get_output(1).toBool());
}

TEST(Method, EndlessLoopIsAnError) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  plan.jump_if_false(plan.boolean(false), 0);
  LoadedMethod loaded = load(builder);
  EXPECT_EQ(loaded.method->execute(), Error::InvalidProgram);
}

TEST(Method, BranchMovesTheChosenTensorToTheOutput) {
  ProgramBuilder builder;
  builder.constants.push_back(ProgramBuilder::bytes<float>({1}));
  builder.constants.push_back(ProgramBuilder::bytes<float>({2}));
  PlanBuilder& plan = builder.method();
  const int32_t condition = plan.tensor({.sizes = {2}, .memory_id = 1, .dtype = ScalarType::Bool});
  const int32_t one = plan.tensor({.sizes = {1}, .data = 1});
  const int32_t two = plan.tensor({.sizes = {1}, .data = 2});
  const int32_t out = plan.tensor({.sizes = {1}});
  const int32_t no = plan.boolean(false);
  plan.jump_if_false(condition, 3);
  plan.move(one, out);
  plan.jump_if_false(no, 4);
  plan.move(two, out);
  plan.inputs = {condition};
  plan.outputs = {out};
  plan.arenas = {0, 16};
  LoadedMethod loaded = load(builder);
  ASSERT_EQ(loaded.error, Error::Ok);
  for (const uint8_t second : {1, 0, 1}) {
    OwnedTensor<uint8_t> value({2}, {1, second}, ScalarType::Bool);
    ASSERT_EQ(loaded.method->set_input(value.value(), 0), Error::Ok);
    ASSERT_EQ(loaded.method->execute(), Error::Ok);
    EXPECT_EQ(loaded.output(), (Floats{second ? 1.f : 2.f}));
  }
}

TEST(Method, ViewGivesItsResultMemoryAndFreeTakesIt) {
  ProgramBuilder builder;
  builder.constants.push_back(ProgramBuilder::bytes<float>({1, 2}));
  PlanBuilder& plan = builder.method();
  const int32_t constant = plan.tensor({.sizes = {2}, .data = 1});
  const int32_t seen = plan.tensor({.sizes = {2}});
  const int32_t out = plan.tensor({.sizes = {2}, .memory_id = 1});
  const int32_t size = plan.integers({});
  plan.kernel("executorch_prim::et_view.default", {constant, size, seen});
  plan.kernel("test::add.out", {seen, seen, out, out});
  plan.free(seen);
  plan.outputs = {out};
  plan.arenas = {0, 16};
  LoadedMethod loaded = load(builder);
  ASSERT_EQ(loaded.method->execute(), Error::Ok);
  EXPECT_EQ(loaded.output(), (Floats{2, 4}));
}

TEST(Method, TensorThatNeverGotMemoryIsAnErrorNotACrash) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  const int32_t nowhere = plan.tensor({.sizes = {2}});
  const int32_t list = plan.tensors({nowhere});
  const int32_t out = plan.tensor({.sizes = {2}, .memory_id = 1});
  const int32_t none = plan.optional_tensors({});
  plan.kernel("test::sum_lists", {list, none, none, none, none, none, out});
  plan.outputs = {out};
  plan.arenas = {0, 16};
  LoadedMethod loaded = load(builder);
  ASSERT_EQ(loaded.error, Error::Ok);
  EXPECT_EQ(loaded.method->execute(), Error::InvalidState);
}

TEST(Method, MutableBufferStartsAtItsStateAndKeepsWhatWasWritten) {
  ProgramBuilder builder;
  builder.states.push_back(ProgramBuilder::bytes<float>({7}));
  builder.constants.push_back(ProgramBuilder::bytes<float>({1}));
  PlanBuilder& plan = builder.method();
  const int32_t count = plan.tensor({.sizes = {1}, .memory_id = 2, .data = 1, .name = "count"});
  const int32_t one = plan.tensor({.sizes = {1}, .data = 1});
  plan.kernel("test::add.out", {count, one, count, count});
  plan.outputs = {count};
  plan.arenas = {0, 0, 16};
  LoadedMethod loaded = load(builder);
  ASSERT_EQ(loaded.error, Error::Ok);
  ASSERT_EQ(loaded.method->execute(), Error::Ok);
  EXPECT_EQ(loaded.output(), (Floats{8}));
  auto attribute = loaded.method->get_attribute("count");
  ASSERT_TRUE(attribute.ok());
  attribute->mutable_data_ptr<float>()[0] = 20;
  ASSERT_EQ(loaded.method->execute(), Error::Ok);
  EXPECT_EQ(loaded.output(), (Floats{21}));
  EXPECT_EQ(loaded.method->get_attribute("other").error(), Error::NotFound);
}

TEST(Method, MethodsOfOneProgramAreLoadedByName) {
  ProgramBuilder builder;
  PlanBuilder& first = builder.method("first");
  first.outputs = {first.integer(1)};
  PlanBuilder& second = builder.method("second");
  second.outputs = {second.integer(2), second.none()};
  LoadedMethod loaded = load(builder, "second");
  ASSERT_EQ(loaded.error, Error::Ok);
  ASSERT_EQ(loaded.method->execute(), Error::Ok);
  EValue outputs[3] = {EValue(true), EValue(true), EValue(true)};
  ASSERT_EQ(loaded.method->get_outputs(outputs, 3), Error::Ok);
  EXPECT_EQ(outputs[0].toInt(), 2);
  EXPECT_TRUE(outputs[2].isNone());
  EXPECT_EQ(loaded.method->get_outputs(outputs, 1), Error::InvalidArgument);
  loaded.load("third");
  EXPECT_EQ(loaded.error, Error::InvalidArgument);
}

TEST(Method, MissingOperatorsAreReportedAtLoad) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  plan.kernel("test::absent.out", {});
  plan.kernel("test::also_absent", {});
  plan.kernel("test::fail", {});
  EXPECT_EQ(load(builder).error, Error::OperatorMissing);
}

TEST(Method, FailureOfAKernelEndsTheExecutionAndTheNextOneStartsAfresh) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  const int32_t i = plan.integer(0);
  plan.kernel("test::increment", {i, i});
  plan.kernel("test::fail", {i});
  plan.outputs = {i};
  LoadedMethod loaded = load(builder);
  EXPECT_EQ(loaded.method->execute(), Error::NotSupported);
  EXPECT_EQ(loaded.method->execute(), Error::NotSupported);
  EXPECT_EQ(loaded.method->get_output(0).toInt(), 2);
}

TEST(Method, StepsRunOneInstructionEach) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  const int32_t i = plan.integer(0);
  plan.kernel("test::increment", {i, i});
  plan.kernel("test::increment", {i, i});
  plan.inputs = {plan.integer(1)};
  plan.outputs = {i};
  LoadedMethod loaded = load(builder);
  Method& method = *loaded.method;
  ASSERT_EQ(method.experimental_step(), Error::Ok);
  EXPECT_EQ(method.get_output(0).toInt(), 1);
  EXPECT_EQ(method.set_input(EValue(int64_t{1}), 0), Error::InvalidState);
  EXPECT_EQ(method.experimental_reset_execution(), Error::InvalidState);
  EXPECT_TRUE(method.in_progress());
  EXPECT_EQ(method.execute(), Error::InvalidState);
  ASSERT_EQ(method.experimental_step(), Error::Ok);
  EXPECT_EQ(method.experimental_step(), Error::EndOfMethod);
  EXPECT_FALSE(method.in_progress());
  EXPECT_EQ(method.execute(), Error::InvalidState);
  ASSERT_EQ(method.experimental_reset_execution(), Error::Ok);
  EXPECT_EQ(method.execute(), Error::Ok);
  EXPECT_EQ(method.set_input(EValue(int64_t{1}), 0), Error::Ok);
}

TEST(Method, MovedMethodRuns) {
  LoadedMethod loaded = load_adder();
  Method moved = std::move(*loaded.method);
  OwnedTensor<float> x({2, 3}, Floats(6, 0));
  ASSERT_EQ(moved.set_input(x.value(), 0), Error::Ok);
  ASSERT_EQ(moved.execute(), Error::Ok);
  EXPECT_EQ(moved.get_output(0).toTensor().const_data_ptr<float>()[5], 6);
  InstructionOrigin origin;
  EXPECT_FALSE(loaded.method->instruction_origin(0, 0, origin));
  EXPECT_STREQ(loaded.method->input_name(0), "");
  EXPECT_STREQ(loaded.method->output_name(0), "");
}

TEST(Method, ExhaustedMethodAllocatorIsAnError) {
  LoadedMethod loaded = load_adder();
  uint8_t arena[64];
  Span<uint8_t> span(arena, sizeof(arena));
  HierarchicalAllocator planned({&span, 1});
  alignas(16) uint8_t pool[2048];
  size_t failures = 0;
  for (uint32_t size = 0; size <= sizeof(pool); size += 8) {
    MemoryAllocator allocator(size, pool);
    MemoryManager memory(&allocator, &planned);
    auto method = loaded.program->load_method("forward", &memory, nullptr, nullptr, nullptr,
                                              {kKernels.data(), kKernels.size()});
    failures += method.error() == Error::MemoryAllocationFailed ? 1 : 0;
    EXPECT_TRUE(method.ok() || method.error() == Error::MemoryAllocationFailed) << size;
  }
  EXPECT_GT(failures, 0u);
  EXPECT_LT(failures, 2048u / 8);
}

TEST(Method, TooSmallPlannedMemoryIsAnError) {
  LoadedMethod loaded = load_adder();
  uint8_t arena[55];  // the output ends at 56
  Span<uint8_t> span(arena, sizeof(arena));
  HierarchicalAllocator planned({&span, 1});
  alignas(16) uint8_t pool[4096];
  MemoryAllocator allocator(sizeof(pool), pool);
  MemoryManager memory(&allocator, &planned);
  EXPECT_EQ(loaded.program->load_method("forward", &memory).error(), Error::MemoryAllocationFailed);
}

TEST(MethodMeta, TellsShapesMemoryAndInstructions) {
  LoadedMethod loaded = load_adder();
  const MethodMeta meta = loaded.method->method_meta();
  EXPECT_STREQ(meta.name(), "forward");
  ASSERT_EQ(meta.num_inputs(), 1u);
  EXPECT_EQ(*meta.input_tag(0), Tag::Tensor);
  EXPECT_EQ(meta.input_tag(1).error(), Error::InvalidArgument);
  auto input = meta.input_tensor_meta(0);
  ASSERT_TRUE(input.ok());
  EXPECT_EQ(input->sizes()[1], 3);
  EXPECT_EQ(input->dim_order()[1], 1);
  EXPECT_EQ(input->nbytes(), 24u);
  EXPECT_EQ(input->scalar_type(), ScalarType::Float);
  EXPECT_TRUE(input->is_memory_planned());
  EXPECT_TRUE(input->is_dynamic());
  ASSERT_EQ(meta.num_memory_planned_buffers(), 1u);
  EXPECT_EQ(*meta.memory_planned_buffer_size(0), 64);
  EXPECT_TRUE(meta.memory_planned_buffer_device(0)->is_cpu());
  EXPECT_EQ(meta.memory_planned_buffer_size(1).error(), Error::InvalidArgument);
  EXPECT_FALSE(meta.uses_backend("Any"));
  EXPECT_EQ(meta.num_attributes(), 0u);
}

TEST(MethodMeta, TellsThatSizesAreFixed) {
  LoadedMethod loaded = load_adder(/*dynamism=*/0);
  const auto input = loaded.method->method_meta().input_tensor_meta(0);
  ASSERT_TRUE(input.ok());
  EXPECT_FALSE(input->is_dynamic());
}

}  // namespace
}  // namespace executorch::runtime
