#include <executorch/kernels/portable/internal/testing.h>
#include <executorch/runtime/core/device_allocator.h>

#include <cstring>

using executorch::aten::DimOrderType;
using executorch::aten::SizesType;
using executorch::aten::StridesType;
using executorch::aten::TensorImpl;
using executorch::runtime::DeviceAllocator;
using executorch::runtime::Result;
using executorch::runtime::etensor::DeviceIndex;
using executorch::runtime::etensor::DeviceType;
using namespace torch::executor::native;

namespace {

// A device whose memory is the host's, which counts what is copied.
class FakeDevice final : public DeviceAllocator {
 public:
  Result<void*> allocate(size_t, DeviceIndex, size_t) override { return Error::NotImplemented; }
  void deallocate(void*, DeviceIndex) override {}
  Error copy_host_to_device(void* to, const void* from, size_t n, DeviceIndex index) override {
    to_device += n;
    return copy(to, from, n, index);
  }
  Error copy_device_to_host(void* to, const void* from, size_t n, DeviceIndex index) override {
    to_host += n;
    return copy(to, from, n, index);
  }
  DeviceType device_type() const override { return DeviceType::CUDA; }

  size_t to_device = 0, to_host = 0;

 private:
  static Error copy(void* to, const void* from, size_t n, DeviceIndex index) {
    if (index != 1) return Error::InvalidState;
    std::memcpy(to, from, n);
    return Error::Ok;
  }
};

struct OnDevice {
  explicit OnDevice(DeviceIndex index = 1)
      : impl(ScalarType::Float, 2, sizes, data, order, strides, TensorShapeDynamism::DYNAMIC_BOUND,
             DeviceType::CUDA, index),
        tensor(&impl) {}
  SizesType sizes[2] = {2, 3};
  DimOrderType order[2] = {0, 1};
  StridesType strides[2] = {3, 1};
  float data[6] = {};
  TensorImpl impl;
  Tensor tensor;
};

class DeviceCopy : public KernelTest {};

TEST_F(DeviceCopy, GoesThroughTheAllocatorOfTheDevice) {
  Tensor x = floats.make({2, 2}, {1, 2, 3, 4}), y = floats.zeros({2, 2});
  OnDevice there;
  _h2d_copy_out(ctx, x, there.tensor);
  EXPECT_EQ(ctx.failure_state(), Error::NotFound);  // as long as nobody registers one

  static FakeDevice device;
  executorch::runtime::register_device_allocator(&device);
  ctx = KernelRuntimeContext();
  _h2d_copy_out(ctx, x, there.tensor);
  EXPECT_EQ(there.tensor.size(1), 2);
  EXPECT_EQ(there.data[3], 4.0f);
  _d2h_copy_out(ctx, there.tensor, y);
  EXPECT_EQ(y.const_data_ptr<float>()[2], 3.0f);
  EXPECT_EQ(device.to_device, 16u);
  EXPECT_EQ(device.to_host, 16u);
  EXPECT_EQ(ctx.failure_state(), Error::Ok);

  OnDevice other(0);
  _h2d_copy_out(ctx, x, other.tensor);
  EXPECT_EQ(ctx.failure_state(), Error::InvalidState) << "what the allocator says";
}

TEST_F(DeviceCopy, WithinTheHostIsACopy) {
  Tensor x = floats.make({3}, {1, 2, 3}), y = floats.zeros({3});
  _d2h_copy_out(ctx, x, y);
  EXPECT_EQ(y.const_data_ptr<float>()[2], 3.0f);
}

TEST_F(DeviceCopy, RefusesTheWrongSideAndOtherTypes) {
  OnDevice one, other;
  Tensor x = floats.zeros({2, 3}), i = ints.zeros({2, 3});
  _h2d_copy_out(ctx, one.tensor, x);
  expect_failure();
  _h2d_copy_out(ctx, one.tensor, other.tensor);
  expect_failure();
  _d2h_copy_out(ctx, one.tensor, i);
  EXPECT_EQ(ctx.failure_state(), Error::InvalidArgument);
}

}  // namespace
