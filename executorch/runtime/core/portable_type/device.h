#pragma once

#include <cstddef>
#include <cstdint>

namespace executorch::runtime::etensor {

/// The type of device on which a tensor's bytes lie.
enum class DeviceType : int8_t {
  CPU = 0,
  CUDA = 1,
};

constexpr size_t kNumDeviceTypes = 2;

/// The number of a device among those of its type; -1 means the current one.
using DeviceIndex = int8_t;

struct Device final {
  using Type = DeviceType;

  Device(DeviceType type, DeviceIndex index = 0) : type_(type), index_(index) {}

  DeviceType type() const noexcept { return type_; }
  bool is_cpu() const noexcept { return type_ == DeviceType::CPU; }
  DeviceIndex index() const noexcept { return index_; }

  bool operator==(const Device& other) const noexcept {
    return type_ == other.type_ && index_ == other.index_;
  }
  bool operator!=(const Device& other) const noexcept { return !(*this == other); }

 private:
  DeviceType type_;
  DeviceIndex index_;
};

}  // namespace executorch::runtime::etensor

namespace torch::executor {
using ::executorch::runtime::etensor::Device;
using ::executorch::runtime::etensor::DeviceIndex;
using ::executorch::runtime::etensor::DeviceType;
}  // namespace torch::executor
