#include <executorch/kernels/portable/internal/testing.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <type_traits>
#include <vector>

using executorch::aten::DimOrderType;
using executorch::aten::SizesType;
using executorch::aten::StridesType;
using executorch::aten::TensorImpl;
using namespace torch::executor::native;

namespace {

constexpr SizesType kCount = 30;

// A vector in memory of the caller's.
class Placed {
 public:
  Placed(ScalarType type, void* at) : impl_(type, 1, &size_, at, &order_, &stride_) {}
  Tensor tensor() { return Tensor(&impl_); }

 private:
  SizesType size_ = kCount;
  DimOrderType order_ = 0;
  StridesType stride_ = 1;
  TensorImpl impl_;
};

// A file may plan its tensors over one another: positions would change between their sorting and
// their use, or the values while they are compared.
TEST(Sort, RefusesIndicesOverWhatItReads) {
  executorch::runtime::runtime_init();
  std::vector<int64_t> memory(2 * kCount);
  const auto expect = [&](int64_t* self_at, int64_t* values_at, Error error) {
    Placed self(ScalarType::Double, self_at), values(ScalarType::Double, values_at);
    Placed indices(ScalarType::Long, memory.data());
    Tensor v = values.tensor(), i = indices.tensor();
    KernelRuntimeContext ctx;
    sort_values(ctx, self.tensor(), 0, false, v, i);
    EXPECT_EQ(ctx.failure_state(), error);
    KernelRuntimeContext other;
    topk_values(other, self.tensor(), kCount, 0, true, true, v, i);
    EXPECT_EQ(other.failure_state(), error);
  };
  std::vector<int64_t> apart(2 * kCount);
  expect(apart.data(), &memory[kCount], Error::Ok);
  expect(&memory[kCount], &memory[kCount], Error::Ok);  // the values take the input's place
  expect(apart.data(), &memory[kCount - 1], Error::InvalidArgument);
  expect(&memory[kCount - 1], apart.data(), Error::InvalidArgument);
  expect(apart.data(), &apart[1], Error::InvalidArgument);  // threads sort other lines there
}

// Of few different values, with NaN and both zeros among floats.
template <class T>
std::vector<T> some_values(size_t n, std::mt19937& random) {
  std::vector<T> values(n);
  for (T& value : values) value = static_cast<T>(static_cast<int>(random() % 41) - 20);
  if constexpr (std::is_floating_point_v<T>) {
    for (size_t i = 0; i < n; i += 37) values[i] = i % 2 == 0 ? T(NAN) : T(-0.0);
  }
  return values;
}

template <ScalarType type, class T>
void expect_first_in_order(int32_t n, int32_t k, bool largest) {
  SCOPED_TRACE(testing::Message() << static_cast<int>(type) << " " << n << " " << k << " "
                                  << largest);
  executorch::runtime::runtime_init();
  std::mt19937 random(static_cast<uint32_t>(n + k));
  const std::vector<T> x = some_values<T>(static_cast<size_t>(n), random);
  std::vector<int64_t> order(x.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto before = [](T a, T b) { return a < b || (b != b && a == a); };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const T va = x[static_cast<size_t>(a)], vb = x[static_cast<size_t>(b)];
    return largest ? before(vb, va) : before(va, vb);
  });
  order.resize(static_cast<size_t>(k));
  TensorFactory<type> values;
  TensorFactory<ScalarType::Long> positions;
  PlatformMemoryAllocator memory;
  KernelRuntimeContext ctx(nullptr, &memory);
  Tensor found = values.zeros({k}), at = positions.zeros({k});
  topk_values(ctx, values.make({n}, x), k, 0, largest, true, found, at);
  EXPECT_EQ(ctx.failure_state(), Error::Ok);
  EXPECT_TENSOR_EQ(at, positions.make({k}, order));
}

TEST(Sort, TheFirstKAreThoseOfAStableSort) {
  for (const int32_t k : {1, 2, 17, 64, 65, 70}) {
    for (const bool largest : {true, false}) {
      expect_first_in_order<ScalarType::Float, float>(1200, k, largest);
      expect_first_in_order<ScalarType::Double, double>(1200, k, largest);
      expect_first_in_order<ScalarType::Char, int8_t>(1200, k, largest);
      expect_first_in_order<ScalarType::Int, int32_t>(1200, k, largest);
      expect_first_in_order<ScalarType::Long, int64_t>(1200, k, largest);
    }
  }
}

}  // namespace
