// Every operator of the table, called with arguments that no exporter writes: extreme numbers,
// empty and long lists, tensors of any rank, type and extent. Each call ends soon, with a result or
// an error. What an operator takes is asked of itself: it says which argument it expected.
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/executor/platform_memory_allocator.h>
#include <executorch/runtime/kernel/operator_registry.h>
#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace executorch::runtime {
namespace {

using aten::ScalarType;
using aten::Tensor;
using aten::TensorImpl;

constexpr int kTries = 60;  // of each operator
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kMostSeconds = 10;
#else
constexpr double kMostSeconds = 1;
#endif

std::string last_message;
void keep_message(et_timestamp_t, et_pal_log_level_t, const char*, const char*, size_t,
                  const char* message, size_t length) {
  last_message.assign(message, length);
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// What arguments are, as messages call it.
using Kinds = std::vector<std::string>;

/// The arguments of one call, and their memory, which ends where they do.
class Arguments {
 public:
  explicit Arguments(uint64_t seed, bool is_exact = false) : random_(seed), is_exact_(is_exact) {
    rank_ = below(6);
    type_ =
        any<ScalarType>({ScalarType::Float, ScalarType::Float, ScalarType::Double, ScalarType::Long,
                         ScalarType::Int, ScalarType::Half, ScalarType::Bool, ScalarType::Byte});
  }

  void add(const Kinds& kinds) {
    // Results come behind what is no tensor.
    size_t results = kinds.size();
    while (results > 0 && kinds[results - 1] == "Tensor") --results;
    if (results == 0 && !kinds.empty()) results = kinds.size() - 1;
    values_.reserve(kinds.size());
    for (size_t i = 0; i < kinds.size(); ++i) values_.push_back(make(kinds[i], i >= results));
    for (EValue& value : values_) pointers_.push_back(&value);
  }

  Span<EValue*> span() { return {pointers_.data(), pointers_.size()}; }

 private:
  uint64_t below(uint64_t n) { return random_() % n; }
  bool chance(uint64_t percent) { return below(100) < percent; }
  template <class T>
  T any(std::initializer_list<T> list) {
    return list.begin()[below(list.size())];
  }

  int64_t number() {
    using Limits = std::numeric_limits<int64_t>;
    if (chance(60)) return any<int64_t>({0, 1, 1, 2, 3, -1});
    return any<int64_t>({INT32_MAX, INT32_MIN, INT32_MAX - 1, int64_t{1} << 31, int64_t{1} << 32,
                         (int64_t{1} << 32) + 1, Limits::max(), Limits::min(), Limits::max() - 1,
                         Limits::max() / 2 + 1, -2, 1000});
  }
  double real() {
    using Limits = std::numeric_limits<double>;
    return any<double>({0, 1, -1, 0.5, 2, 1e-5, 1e308, -1e308, Limits::infinity(),
                        -Limits::infinity(), Limits::quiet_NaN(), Limits::denorm_min(), 9.3e18,
                        2147483648.0});
  }

  template <class T, class... A>
  T* keep(A&&... a) {
    auto made = std::make_shared<T>(std::forward<A>(a)...);
    kept_.push_back(made);
    return made.get();
  }

  Tensor tensor(bool is_result) {
    const size_t rank = chance(85) ? rank_ : below(6);
    auto& sizes = *keep<std::vector<int32_t>>(rank);
    for (int32_t& size : sizes) {
      size =
          is_result ? any<int32_t>({0, 1, 2, 6, 12, 12, 40}) : any<int32_t>({0, 1, 1, 2, 3, 3, 5});
    }
    if (rank > 0 && chance(15)) {  // a long extent needs no memory beside one of 0
      sizes[below(rank)] = any<int32_t>({INT32_MAX, INT32_MAX, 65536, 1 << 30});
      if (rank > 1) sizes[below(rank)] = 0;
    }
    int64_t elements = 1;
    for (const int32_t size : sizes) elements = std::min<int64_t>(elements * size, 1 << 22);
    if (std::count(sizes.begin(), sizes.end(), 0) > 0) elements = 0;
    if (elements == 1 << 22) {
      std::fill(sizes.begin(), sizes.end(), 1);
      elements = 1;
    }
    auto& order = *keep<std::vector<uint8_t>>(rank);
    std::iota(order.begin(), order.end(), uint8_t{0});
    if (rank > 2 && chance(20)) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
    auto& strides = *keep<std::vector<int32_t>>(rank);
    dim_order_to_stride_nocheck(sizes.data(), order.data(), rank, strides.data());
    const ScalarType type =
        chance(80)   ? type_
        : chance(50) ? ScalarType::Long
                     : any<ScalarType>({ScalarType::Float, ScalarType::Bool, ScalarType::BFloat16,
                                        ScalarType::Char, ScalarType::UInt16});
    auto& bytes = *keep<std::vector<uint8_t>>(static_cast<size_t>(elements) * elementSize(type));
    const uint64_t fill = below(4);
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = fill == 0   ? static_cast<uint8_t>(random_())
                 : fill == 1 ? uint8_t{0xFF}
                             : static_cast<uint8_t>(fill == 2 && i % elementSize(type) == 0);
    }
    auto* const impl =
        keep<TensorImpl>(type, static_cast<ssize_t>(rank), sizes.data(), nullptr, order.data(),
                         strides.data(), aten::TensorShapeDynamism::DYNAMIC_BOUND);
    impl->borrow_data(bytes.data(), static_cast<size_t>(elements), false);
    return Tensor(impl);
  }

  template <class T, class F>
  EValue list(const F& item) {
    const size_t n = chance(80) ? below(5) : below(20);
    auto& items = *keep<std::vector<EValue>>();
    for (size_t i = 0; i < n; ++i) items.push_back(item());
    auto& pointers = *keep<std::vector<EValue*>>(n + 1);
    for (size_t i = 0; i < n; ++i) pointers[i] = items[i].isNone() ? nullptr : &items[i];
    auto* const room = static_cast<T*>(static_cast<void*>(
        keep<std::vector<std::max_align_t>>(n * sizeof(T) / sizeof(std::max_align_t) + 1)->data()));
    return EValue(keep<BoxedEvalueList<T>>(pointers.data(), room, static_cast<int>(n)));
  }

  EValue make(const std::string& kind, bool is_result) {
    if (!is_exact_ && chance(8)) return EValue();
    if (!is_exact_ && chance(1)) return EValue(number());
    if (kind == "Tensor") return EValue(tensor(is_result));
    if (kind == "Int") return EValue(number());
    if (kind == "Double") return EValue(real());
    if (kind == "Bool") return EValue(chance(50));
    if (kind == "a number") {
      return chance(40) ? EValue(number()) : chance(80) ? EValue(real()) : EValue(chance(50));
    }
    if (kind == "String") {
      static const char* const kTexts[] = {"", "none", "trunc", "reflect", "reduced", "sum", "ij"};
      const char* const text = kTexts[below(std::size(kTexts))];
      return EValue(keep<aten::ArrayRef<char>>(text, std::strlen(text)));
    }
    if (kind == "ListInt") {
      const int64_t same = number();
      const bool is_same = chance(30);
      return list<int64_t>([&] { return EValue(is_same ? same : number()); });
    }
    if (kind == "ListTensor") return list<Tensor>([&] { return EValue(tensor(false)); });
    if (kind == "ListOptionalTensor") {
      return list<std::optional<Tensor>>(
          [&] { return chance(30) ? EValue() : EValue(tensor(false)); });
    }
    if (kind == "ListDouble") {
      auto& items = *keep<std::vector<double>>(below(5));
      for (double& item : items) item = real();
      return EValue(keep<aten::ArrayRef<double>>(items.data(), items.size()));
    }
    if (kind == "ListBool") {
      auto* const items = keep<std::array<bool, 4>>();
      for (bool& item : *items) item = chance(50);
      return EValue(keep<aten::ArrayRef<bool>>(items->data(), below(5)));
    }
    ADD_FAILURE() << "a kind that is not known: " << kind;
    return EValue();
  }

  std::mt19937_64 random_;
  bool is_exact_;  // nothing is left out
  size_t rank_ = 0;
  ScalarType type_ = ScalarType::Float;
  std::vector<std::shared_ptr<void>> kept_;
  std::vector<EValue> values_;
  std::vector<EValue*> pointers_;
};

/// Asks the operator, one argument after the other, by giving it strings; no kinds if it does not
/// answer.
Kinds kinds_of(OpFunction op) {
  Kinds kinds;
  for (int round = 0; round < 64; ++round) {
    Arguments arguments(0, true);
    arguments.add(kinds);
    internal::PlatformMemoryAllocator memory;
    KernelRuntimeContext context(nullptr, &memory);
    last_message.clear();
    op(context, arguments.span());
    size_t a = 0, b = 0;
    char text[64] = "";
    if (std::sscanf(last_message.c_str(), "%zu arguments for a kernel with %zu parameters", &a,
                    &b) == 2) {
      kinds.resize(std::max(b, kinds.size() + (kinds.size() == b ? 1 : 0)), "String");
    } else if (std::sscanf(last_message.c_str(), "argument %zu is %*[^,], not %63[^\n]", &a,
                           text) == 2 &&
               a < kinds.size()) {
      kinds[a] = text;
    } else if (std::sscanf(last_message.c_str(), "argument %zu takes a number", &a) == 1 &&
               a < kinds.size()) {
      kinds[a] = "Int";
    } else {
      return kinds;
    }
  }
  return {};
}

TEST(HostileArguments, EndInErrorsOrResultsSoon) {
  runtime_init();
  const PalImpl before = *get_pal_impl();
  register_pal(PalImpl::create(keep_message, __FILE__));
  size_t n_known = 0, n_calls = 0, n_results = 0;
  for (const Kernel& kernel : get_registered_kernels()) {
    const Kinds kinds = kinds_of(kernel.op_);
    if (kinds.empty()) continue;
    ++n_known;
    for (int i = 0; i < kTries; ++i) {
      // Printed if the process ends here.
      SCOPED_TRACE(std::string(kernel.name_) + ", try " + std::to_string(i));
      Arguments arguments(std::hash<std::string>()(kernel.name_) + static_cast<uint64_t>(i));
      arguments.add(kinds);
      internal::PlatformMemoryAllocator memory;
      KernelRuntimeContext context(nullptr, &memory);
      const double start = processor_seconds();
      kernel.op_(context, arguments.span());
      EXPECT_LT(processor_seconds() - start, kMostSeconds);
      ++n_calls;
      n_results += context.failure_state() == Error::Ok;
    }
  }
  register_pal(before);
  // Operators on numbers read their arguments themselves.
  EXPECT_GT(n_known, 290u);
  EXPECT_GT(n_results, n_calls / 50) << "the arguments are too hostile to get anywhere";
  RecordProperty("operators", static_cast<int>(n_known));
  RecordProperty("results", static_cast<int>(n_results));
}

/// A tensor of zeros.
struct Dense {
  Dense(ScalarType type, std::vector<int32_t> shape)
      : sizes(std::move(shape)), order(sizes.size()), strides(sizes.size()) {
    std::iota(order.begin(), order.end(), uint8_t{0});
    (void)dim_order_to_stride(sizes.data(), order.data(), sizes.size(), strides.data());
    size_t n = elementSize(type);
    for (const int32_t size : sizes) n *= static_cast<size_t>(size);
    bytes.resize(n);
    impl.emplace(type, static_cast<ssize_t>(sizes.size()), sizes.data(), bytes.data(), order.data(),
                 strides.data(), aten::TensorShapeDynamism::DYNAMIC_BOUND);
  }
  EValue value() { return EValue(Tensor(&*impl)); }
  std::vector<int32_t> sizes;
  std::vector<uint8_t> order;
  std::vector<int32_t> strides;
  std::vector<char> bytes;
  std::optional<TensorImpl> impl;
};

/// The operator ends so within the time that any may take.
void expect_soon(const char* op, std::vector<EValue>& values, Error expected) {
  runtime_init();
  const auto kernel = get_op_function_from_registry(op);
  ASSERT_TRUE(kernel.ok());
  std::vector<EValue*> args;
  for (EValue& value : values) args.push_back(&value);
  internal::PlatformMemoryAllocator memory;
  KernelRuntimeContext context(nullptr, &memory);
  const double start = processor_seconds();
  (*kernel)(context, {args.data(), args.size()});
  EXPECT_EQ(context.failure_state(), expected);
  EXPECT_LT(processor_seconds() - start, kMostSeconds);
}

// Many indices of few wide rows: what is summed is their product.
TEST(HostileArguments, BagsAreSummedAsLongAsTheirElementsExplain) {
  for (const int32_t n : {1 << 10, 1 << 16}) {
    Dense weight(ScalarType::Float, {1, n}), indices(ScalarType::Long, {n});
    Dense offsets(ScalarType::Long, {1}), out(ScalarType::Float, {1, n});
    Dense of_index(ScalarType::Long, {n}), size(ScalarType::Long, {1}), best(ScalarType::Long, {1});
    std::vector<EValue> values = {
        weight.value(),      indices.value(), offsets.value(),  EValue(false),
        EValue(int64_t{0}),  EValue(false),   EValue(),         EValue(false),
        EValue(int64_t{-1}), out.value(),     of_index.value(), size.value(),
        best.value(),        EValue()};
    expect_soon("aten::_embedding_bag.out", values,
                n == 1 << 10 ? Error::Ok : Error::InvalidArgument);
  }
}

// Windows over one row of padding, and a wide image of which they cover one column.
TEST(HostileArguments, WindowsAreFoldedInTheTimeOfTheirElements) {
  constexpr int32_t kRows = 1024, kWidth = 1 << 21;
  Dense self(ScalarType::Float, {kRows, kRows}), out(ScalarType::Float, {1, 1, kWidth});
  const auto list = [](EValue* pair, int64_t a, int64_t b) {
    pair[0] = EValue(a);
    pair[1] = EValue(b);
  };
  EValue numbers[5][2];
  list(numbers[0], 1, kWidth);     // of the image
  list(numbers[1], kRows, 1);      // of the windows
  list(numbers[2], 1, 1);          // dilation
  list(numbers[3], kRows - 1, 0);  // padding
  list(numbers[4], 1, kWidth);     // stride
  EValue* pointers[5][2];
  int64_t room[5][2];
  std::vector<BoxedEvalueList<int64_t>> lists;
  lists.reserve(5);
  std::vector<EValue> values = {self.value()};
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 2; ++j) pointers[i][j] = &numbers[i][j];
    lists.emplace_back(pointers[i], room[i], 2);
    values.emplace_back(&lists.back());
  }
  values.push_back(out.value());
  values.emplace_back();
  expect_soon("aten::col2im.out", values, Error::Ok);
}

}  // namespace
}  // namespace executorch::runtime
