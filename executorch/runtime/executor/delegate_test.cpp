#include <executorch/runtime/backend/backend_execution_context.h>
#include <executorch/runtime/backend/backend_init_context.h>
#include <executorch/runtime/executor/merged_data_map.h>
#include <executorch/runtime/executor/method_rewriter.h>
#include <executorch/runtime/executor/testing_util/loaded_method.h>

#include <functional>
#include <map>
#include <string>

namespace executorch::runtime {
namespace {

using testing::DelegateSpec;
using testing::LoadedMethod;
using testing::OwnedTensor;
using testing::PlanBuilder;
using testing::ProgramBuilder;
using Floats = std::vector<float>;

struct Seen {
  std::string blob, specs, data, method;
  int alive = 0;
  size_t n_outputs = 1;
  bool fails = false;
  bool writes_first = false;
} seen;

/// Adds the first byte of its blob to its input.
class Adder final : public BackendInterface {
 public:
  bool is_available() const override { return true; }
  Result<DelegateHandle*> init(BackendInitContext& context, FreeableBuffer* processed,
                               ArrayRef<CompileSpec> compile_specs) const override {
    if (seen.fails) return Error::DelegateInvalidCompatibility;
    seen.blob.assign(static_cast<const char*>(processed->data()), processed->size());
    for (const CompileSpec& spec : compile_specs) {
      seen.specs += std::string(spec.key) + "=" +
                    std::string(static_cast<char*>(spec.value.buffer), spec.value.nbytes) + ";";
    }
    seen.method = context.get_method_name();
    if (context.get_named_data_map() != nullptr) {
      auto data = context.get_named_data_map()->get_data("key");
      if (data.ok()) seen.data.assign(static_cast<const char*>(data->data()), data->size());
    }
    ++seen.alive;
    return static_cast<DelegateHandle*>(const_cast<void*>(processed->data()));
  }
  Error execute(BackendExecutionContext& context, DelegateHandle* handle,
                Span<EValue*> args) const override {
    if (context.allocate(16) == nullptr || args.size() != 2) return Error::InvalidArgument;
    args[1]->toTensor().mutable_data_ptr<float>()[0] =
        args[0]->toTensor().const_data_ptr<float>()[0] + *static_cast<uint8_t*>(handle);
    return Error::Ok;
  }
  bool writes_argument(const DelegateHandle*, size_t index, size_t n_args) const override {
    return index + seen.n_outputs >= n_args || (seen.writes_first && index == 0);
  }
  void destroy(DelegateHandle*) const override { --seen.alive; }
};

class Unavailable final : public BackendInterface {
 public:
  bool is_available() const override { return false; }
  Result<DelegateHandle*> init(BackendInitContext&, FreeableBuffer*,
                               ArrayRef<CompileSpec>) const override {
    return Error::Internal;
  }
  Error execute(BackendExecutionContext&, DelegateHandle*, Span<EValue*>) const override {
    return Error::Internal;
  }
};

/// Tensors of two floats by name.
class FloatsByName final : public NamedDataMap {
 public:
  std::map<std::string, std::pair<Floats, int32_t>> entries;
  Result<const TensorLayout> get_tensor_layout(std::string_view key) const override {
    const auto entry = entries.find(std::string(key));
    if (entry == entries.end()) return Error::NotFound;
    static const uint8_t order[] = {0};
    return TensorLayout::create({&entry->second.second, 1}, {order, 1}, aten::ScalarType::Float);
  }
  Result<FreeableBuffer> get_data(std::string_view key) const override {
    const auto entry = entries.find(std::string(key));
    if (entry == entries.end()) return Error::NotFound;
    ++loads;
    return FreeableBuffer(entry->second.first.data(), entry->second.first.size() * 4, nullptr);
  }
  Error load_data_into(std::string_view key, void* buffer, size_t size) const override {
    auto data = get_data(key);
    if (!data.ok()) return data.error();
    std::memcpy(buffer, data->data(), size);
    return Error::Ok;
  }
  Result<uint32_t> get_num_keys() const override { return static_cast<uint32_t>(entries.size()); }
  Result<const char*> get_key(uint32_t index) const override {
    auto at = entries.begin();
    std::advance(at, index);
    return at->first.c_str();
  }
  mutable int loads = 0;
};

class DelegateTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    static Adder adder;
    static Unavailable unavailable;
    runtime_init();
    ASSERT_EQ(register_backend({"Adder", &adder}), Error::Ok);
    ASSERT_EQ(register_backend({"Unavailable", &unavailable}), Error::Ok);
  }
  void SetUp() override { seen = Seen{}; }

  static void call(ProgramBuilder& builder, const std::vector<DelegateSpec>& delegates) {
    PlanBuilder& plan = builder.method();
    const int32_t x = plan.tensor({.sizes = {1}, .memory_id = 1});
    const int32_t out = plan.tensor({.sizes = {1}, .memory_id = 1, .offset = 16});
    plan.delegates = delegates;
    plan.call_delegate(static_cast<int32_t>(delegates.size()) - 1, {x, out});
    plan.inputs = {x};
    plan.outputs = {out};
    plan.arenas = {0, 32};
  }
};

TEST_F(DelegateTest, RunsWithItsBlobFromEitherPlace) {
  for (const bool in_segment : {false, true}) {
    seen = Seen{};
    ProgramBuilder builder;
    call(builder, {{"Adder", {5, 6}, in_segment, {{"level", "3"}, {"none", ""}}}});
    {
      LoadedMethod loaded(builder.build());
      ASSERT_EQ(loaded.error, Error::Ok);
      EXPECT_EQ(seen.blob, "\5\6");
      EXPECT_EQ(seen.specs, "level=3;none=;");
      EXPECT_EQ(seen.method, "forward");
      EXPECT_TRUE(loaded.method->method_meta().uses_backend("Adder"));
      EXPECT_STREQ(*loaded.method->method_meta().get_backend_name(0), "Adder");
      OwnedTensor<float> x({1}, {10});
      ASSERT_EQ(loaded.method->set_input(x.value(), 0), Error::Ok);
      ASSERT_EQ(loaded.method->execute(), Error::Ok);
      EXPECT_EQ(loaded.output(), (Floats{15}));
      Method moved = std::move(*loaded.method);
      EXPECT_EQ(seen.alive, 1);
    }
    EXPECT_EQ(seen.alive, 0);
  }
}

TEST_F(DelegateTest, SeesNamedDataOfTheProgramAndOfExternalFiles) {
  ProgramBuilder builder;
  builder.named_data = {{"key", {'i', 'n'}}};
  call(builder, {{"Adder", {1}}});
  const auto bytes = builder.build();
  FloatsByName external;
  external.entries["other"] = {{0, 0}, 2};
  LoadedMethod own(bytes);
  EXPECT_EQ(seen.data, "in");
  LoadedMethod merged(bytes, "forward", nullptr, &external);
  EXPECT_EQ(merged.error, Error::Ok);
  EXPECT_EQ(seen.data, "in");
}

TEST_F(DelegateTest, FindsItsDataAmongMany) {
  // More than are looked at one by one, in no order.
  for (const char* before : {"a", "z", "ke", "key0"}) {
    ProgramBuilder builder;
    for (int i = 0; i < 100; ++i) {
      const std::string number = std::to_string(i * 37 % 100);
      builder.named_data.emplace_back(before + std::string("-") + number,
                                      std::vector<uint8_t>{'x'});
      if (i == 70) builder.named_data.push_back({"key", {'i', 'n'}});
    }
    call(builder, {{"Adder", {1}}});
    FloatsByName external;
    external.entries["other"] = {{0, 0}, 2};
    for (const bool is_merged : {false, true}) {
      seen.data.clear();
      LoadedMethod loaded(builder.build(), "forward", nullptr, is_merged ? &external : nullptr);
      EXPECT_EQ(loaded.error, Error::Ok);
      EXPECT_EQ(seen.data, "in") << before;
    }
  }
  ProgramBuilder builder;
  for (int i = 0; i < 100; ++i) {
    builder.named_data.emplace_back(std::to_string(i), std::vector<uint8_t>{'x'});
  }
  call(builder, {{"Adder", {1}}});
  seen.data = "before";
  LoadedMethod loaded(builder.build());
  EXPECT_EQ(loaded.error, Error::Ok);
  EXPECT_EQ(seen.data, "before");
}

TEST_F(DelegateTest, UnknownOrUnavailableBackendIsNotFound) {
  for (const char* name : {"Absent", "Unavailable"}) {
    ProgramBuilder builder;
    call(builder, {{name, {1}}});
    EXPECT_EQ(LoadedMethod(builder.build()).error, Error::NotFound);
  }
}

TEST_F(DelegateTest, WhatWasInitialisedIsDestroyedWhenALaterOneFails) {
  ProgramBuilder builder;
  call(builder, {{"Adder", {1}}, {"Absent", {1}}});
  EXPECT_EQ(LoadedMethod(builder.build()).error, Error::NotFound);
  EXPECT_EQ(seen.alive, 0);
}

TEST_F(DelegateTest, RefusalOfTheBlobFailsTheLoad) {
  ProgramBuilder builder;
  call(builder, {{"Adder", {1}}});
  seen.fails = true;
  EXPECT_EQ(LoadedMethod(builder.build()).error, Error::DelegateInvalidCompatibility);
}

TEST_F(DelegateTest, WrittenArgumentsAreCheckedWhenTheMethodIsLoaded) {
  const auto error = [](const std::function<void(PlanBuilder&, int32_t, int32_t)>& fill) {
    ProgramBuilder builder;
    builder.constants.push_back(ProgramBuilder::bytes<float>({1}));
    PlanBuilder& plan = builder.method();
    const int32_t x = plan.tensor({.sizes = {1}, .memory_id = 1});
    const int32_t constant = plan.tensor({.sizes = {1}, .data = 1});
    plan.delegates = {{"Adder", {5}}};
    plan.arenas = {0, 32};
    fill(plan, x, constant);
    const Error result = LoadedMethod(builder.build()).error;
    EXPECT_EQ(seen.alive, 0);
    return result;
  };
  EXPECT_EQ(error([](auto& plan, int32_t x, int32_t c) {
              plan.call_delegate(0, {c, x});
            }),
            Error::Ok);
  EXPECT_EQ(error([](auto& plan, int32_t x, int32_t) {
              plan.call_delegate(0, {x, x});
            }),
            Error::Ok);
  EXPECT_EQ(error([](auto& plan, int32_t x, int32_t c) {
              plan.call_delegate(0, {x, c});
            }),
            Error::InvalidProgram);
  EXPECT_EQ(error([](auto& plan, int32_t x, int32_t) {
              plan.call_delegate(0, {x, plan.integer(1)});
            }),
            Error::InvalidProgram);
  EXPECT_EQ(error([](auto& plan, int32_t x, int32_t) {
              plan.call_delegate(0, {x, plan.tensors({x})});
            }),
            Error::InvalidProgram);
  seen.n_outputs = 2;
  EXPECT_EQ(error([](auto& plan, int32_t x, int32_t) {
              plan.call_delegate(0, {x, x});
            }),
            Error::InvalidProgram);
  seen.n_outputs = 1;  // but two calls may write one tensor
  EXPECT_EQ(error([](auto& plan, int32_t x, int32_t) {
              plan.call_delegate(0, {x, x});
              plan.call_delegate(0, {x, x});
            }),
            Error::Ok);
}

TEST_F(DelegateTest, RewritersSeeWhereWrittenArgumentsBegin) {
  static uint32_t first = 0;
  set_method_rewriter([](const MethodDraft& method) { first = method.chains[0][0].first_written; });
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  std::vector<int32_t> args;
  for (uint32_t i = 0; i < 3; ++i) {
    args.push_back(plan.tensor({.sizes = {1}, .memory_id = 1, .offset = 16 * i}));
  }
  plan.delegates = {{"Adder", {5}}};
  plan.call_delegate(0, args);
  plan.arenas = {0, 48};
  for (const size_t n_outputs : {0u, 1u, 2u, 3u}) {
    seen.n_outputs = n_outputs;
    EXPECT_EQ(LoadedMethod(builder.build()).error, Error::Ok);
    EXPECT_EQ(first, 3 - n_outputs);
  }
  seen.n_outputs = 1;
  seen.writes_first = true;
  EXPECT_EQ(LoadedMethod(builder.build()).error, Error::Ok);
  EXPECT_EQ(first, 3u);
  set_method_rewriter(nullptr);
}

TEST_F(DelegateTest, DoesNotWriteAConstantThatWasMovedToItsOutput) {
  ProgramBuilder builder;
  builder.constants.push_back(ProgramBuilder::bytes<float>({1}));
  PlanBuilder& plan = builder.method();
  const int32_t constant = plan.tensor({.sizes = {1}, .data = 1});
  const int32_t out = plan.tensor({.sizes = {1}, .memory_id = 1});
  plan.delegates = {{"Adder", {5}}};
  plan.move(constant, out);
  plan.call_delegate(0, {constant, out});
  plan.outputs = {constant};
  plan.arenas = {0, 16};
  LoadedMethod loaded(builder.build());
  ASSERT_EQ(loaded.error, Error::Ok);
  EXPECT_EQ(loaded.method->execute(), Error::InvalidProgram);
  EXPECT_EQ(loaded.output(), (Floats{1}));
}

class ExternalDataTest : public ::testing::Test {
 protected:
  ExternalDataTest() {
    PlanBuilder& plan = builder_.method();
    plan.tensor({.sizes = {2}, .name = "w", .external = true});
    plan.tensor({.sizes = {2}, .name = "w", .external = true});
    plan.tensor({.sizes = {2}, .memory_id = 1, .name = "state", .external = true});
    plan.outputs = {0, 1, 2};
    plan.arenas = {0, 16};
    bytes_ = builder_.build();
    data_.entries["w"] = {{1, 2}, 2};
    data_.entries["state"] = {{3, 4}, 2};
  }
  Error load_error() { return LoadedMethod(bytes_, "forward", nullptr, &data_).error; }

  ProgramBuilder builder_;
  std::vector<uint8_t> bytes_;
  FloatsByName data_;
};

TEST_F(ExternalDataTest, ConstantsAreSharedAndStatesCopied) {
  LoadedMethod loaded(bytes_, "forward", nullptr, &data_);
  ASSERT_EQ(loaded.error, Error::Ok);
  EXPECT_EQ(data_.loads, 2);  // "w" once
  ASSERT_EQ(loaded.method->execute(), Error::Ok);
  EXPECT_EQ(loaded.output(0), (Floats{1, 2}));
  EXPECT_EQ(loaded.output(1), (Floats{1, 2}));
  EXPECT_EQ(loaded.output(2), (Floats{3, 4}));
  EXPECT_EQ(loaded.method->method_meta().num_attributes(), 3u);
  EXPECT_EQ(loaded.method->method_meta().attribute_tensor_meta(2)->name(), "state");
}

TEST_F(ExternalDataTest, EachConstantOfManyIsLoadedOnce) {
  ProgramBuilder builder;
  PlanBuilder& plan = builder.method();
  for (int32_t i = 0; i < 40; ++i) {
    plan.tensor({.sizes = {1}, .name = std::to_string(i * 7 % 20), .external = true});
    plan.outputs.push_back(i);
  }
  FloatsByName data;
  for (int i = 0; i < 20; ++i) data.entries[std::to_string(i)] = {{static_cast<float>(i)}, 1};
  const auto bytes = builder.build();
  LoadedMethod loaded(bytes, "forward", nullptr, &data);
  ASSERT_EQ(loaded.error, Error::Ok);
  EXPECT_EQ(data.loads, 20);
  ASSERT_EQ(loaded.method->execute(), Error::Ok);
  for (size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(loaded.output(i), (Floats{static_cast<float>(i * 7 % 20)}));
  }
}

TEST_F(ExternalDataTest, MissingFileKeyOrOtherShapeIsRefused) {
  EXPECT_EQ(LoadedMethod(bytes_).error, Error::InvalidExternalData);
  data_.entries["w"].second = 1;
  EXPECT_EQ(load_error(), Error::InvalidExternalData);
  data_.entries.erase("w");
  EXPECT_EQ(load_error(), Error::NotFound);
}

TEST(MergedDataMap, TakesTwoMaps) {
  FloatsByName map;
  EXPECT_EQ(internal::MergedDataMap::load(nullptr, &map).error(), Error::InvalidArgument);
  EXPECT_EQ(internal::MergedDataMap::load(&map, nullptr).error(), Error::InvalidArgument);
  EXPECT_TRUE(internal::MergedDataMap::load(&map, &map).ok());
}

TEST_F(ExternalDataTest, FewerBytesThanTheLayoutSaysAreRefused) {
  data_.entries["w"].first = {1};
  EXPECT_EQ(load_error(), Error::InvalidExternalData);
}

}  // namespace
}  // namespace executorch::runtime
