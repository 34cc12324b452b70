#include <executorch/kernels/portable/internal/testing.h>

#include <cstdint>
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

}  // namespace
