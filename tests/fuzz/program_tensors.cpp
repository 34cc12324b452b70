// Types, layouts and memory of tensors, and what makes them legal again.
#include <algorithm>
#include <numeric>

#include "program_edit.h"

namespace executorch::fuzz {
namespace {

constexpr fb::ScalarType kTypes[] = {
    fb::ScalarType::BYTE,   fb::ScalarType::CHAR,   fb::ScalarType::SHORT,
    fb::ScalarType::INT,    fb::ScalarType::LONG,   fb::ScalarType::HALF,
    fb::ScalarType::FLOAT,  fb::ScalarType::DOUBLE, fb::ScalarType::BOOL,
    fb::ScalarType::QINT8,  fb::ScalarType::QUINT8, fb::ScalarType::QINT32,
    fb::ScalarType::UINT16, fb::ScalarType::UINT32, fb::ScalarType::BFLOAT16,
    fb::ScalarType::UINT64,
};

uint64_t product(const std::vector<int32_t>& sizes, uint64_t of_zero) {
  uint64_t all = 1;
  for (const int32_t size : sizes) {
    const uint64_t extent = size == 0 ? of_zero : static_cast<uint64_t>(std::max(size, 0));
    if (__builtin_mul_overflow(all, extent, &all) || all > uint64_t{1} << 62) {
      return uint64_t{1} << 62;
    }
  }
  return all;
}

}  // namespace

uint64_t bytes_of(fb::ScalarType type) {
  switch (type) {
    case fb::ScalarType::SHORT:
    case fb::ScalarType::HALF:
    case fb::ScalarType::BFLOAT16:
    case fb::ScalarType::UINT16:
    case fb::ScalarType::BITS16:
      return 2;
    case fb::ScalarType::INT:
    case fb::ScalarType::FLOAT:
    case fb::ScalarType::QINT32:
    case fb::ScalarType::UINT32:
      return 4;
    case fb::ScalarType::LONG:
    case fb::ScalarType::DOUBLE:
    case fb::ScalarType::UINT64:
      return 8;
    default:
      return static_cast<int>(type) == 9 ? 8 : static_cast<int>(type) == 10 ? 16 : 1;
  }
}

// Some extent becomes small, or 0, until the rest can be given.
void Edit::shrink(fb::TensorT& tensor) {
  const uint64_t limit = kMaxBytes / bytes_of(tensor.scalar_type);
  auto& sizes = tensor.sizes;
  for (int round = 0; round < 32 && product(sizes, 0) > limit; ++round) {
    int32_t& size = any_of(sizes, random_);
    if (size > 1) size = random_.chance(60) ? 0 : static_cast<int32_t>(random_.below(2));
  }
  // The strides count 0 as 1, and all but the first must be small.
  for (int round = 0; round < 32 && product(sizes, 1) > uint64_t{1} << 60; ++round) {
    any_of(sizes, random_) = 1;
  }
}

void Edit::repair(fb::TensorT& tensor) {
  const size_t rank = tensor.sizes.size();
  if (tensor.dim_order.size() != rank) {
    tensor.dim_order.resize(rank);
    std::iota(tensor.dim_order.begin(), tensor.dim_order.end(), uint8_t{0});
  }
  const bool is_open = tensor.allocation_info == nullptr && tensor.data_buffer_idx == 0 &&
                       tensor.shape_dynamism != fb::TensorShapeDynamism::STATIC;
  if (rank > 0 && !(is_open && random_.chance(30))) shrink(tensor);
  give_memory(tensor, product(tensor.sizes, 0) * bytes_of(tensor.scalar_type));
}

void Edit::give_memory(fb::TensorT& tensor, uint64_t bytes) {
  if (tensor.allocation_info == nullptr) {
    if (tensor.data_buffer_idx == 0) return;
    for (size_t i = 0; i < plan_.values.size(); ++i) {
      if (plan_.values[i]->val.AsTensor() == &tensor) make_input(static_cast<int32_t>(i));
    }
    return;
  }
  auto& place = *tensor.allocation_info;
  tensor.data_buffer_idx = 0;  // the initial state has another size
  if (place.memory_id == 0 || place.memory_id >= plan_.non_const_buffer_sizes.size()) return;
  int64_t& arena = plan_.non_const_buffer_sizes[place.memory_id];
  if (place.memory_offset_low + bytes <= static_cast<uint64_t>(arena)) return;
  // At the end: nothing else lies there, and what runs past it meets the guard.
  const uint64_t at = (static_cast<uint64_t>(arena) + 15) / 16 * 16;
  constexpr uint64_t kMost = INT64_MAX;
  if (at > kMost || bytes > kMost - at) return;  // the arena stays too small
  place.memory_offset_low = static_cast<uint32_t>(at);
  arena = static_cast<int64_t>(at + bytes);
}

bool Edit::make_input(int32_t index) {
  fb::TensorT* found = tensor(index);
  if (found == nullptr || found->allocation_info != nullptr || found->data_buffer_idx == 0) {
    return false;
  }
  found->data_buffer_idx = 0;
  found->extra_tensor_info.reset();
  found->shape_dynamism =
      random_.chance(80) ? fb::TensorShapeDynamism::DYNAMIC_BOUND : fb::TensorShapeDynamism::STATIC;
  plan_.inputs.push_back(index);
  return true;
}

void Edit::make_inputs() {
  const uint32_t share = random_.chance(50) ? 100 : 50;
  for (size_t i = 0; i < plan_.values.size(); ++i) {
    if (random_.chance(share)) make_input(static_cast<int32_t>(i));
  }
}

void Edit::widen_results() {
  const bool is_planned = random_.chance(70);
  const int32_t extent = static_cast<int32_t>(random_.chance(50) ? 1 + random_.below(40) : 12);
  for (auto& any : plan_.values) {
    auto* found = any->val.AsTensor();
    if (found == nullptr || found->allocation_info == nullptr || found->data_buffer_idx != 0) {
      continue;
    }
    uint64_t room = kMaxBytes / 16;
    for (int32_t& size : found->sizes) {
      size = static_cast<int32_t>(
          std::min<uint64_t>(static_cast<uint64_t>(std::max(extent, size)), room));
      room /= static_cast<uint64_t>(std::max(size, 1));
    }
    found->shape_dynamism = fb::TensorShapeDynamism::DYNAMIC_BOUND;
    if (is_planned) {
      give_memory(*found, product(found->sizes, 0) * bytes_of(found->scalar_type));
    } else {
      repair(*found);
    }
  }
}

void Edit::change_types() {
  auto* args = any_arguments();
  if (args == nullptr) return;
  const std::vector<fb::TensorT*> found = tensors_of(*args);
  if (found.empty()) return;
  const fb::ScalarType was = found[random_.below(found.size())]->scalar_type;
  const fb::ScalarType becomes =
      random_.chance(95) ? any_of(kTypes, random_) : static_cast<fb::ScalarType>(random_.below(32));
  const bool all_of_that = random_.chance(60);
  for (fb::TensorT* one : found) {
    if (all_of_that ? one->scalar_type == was : random_.chance(40)) {
      one->scalar_type = becomes;
      repair(*one);
    }
  }
}

void Edit::change_layout() {
  auto* args = any_arguments();
  if (args == nullptr) return;
  const bool last = random_.chance(50);
  for (fb::TensorT* found : tensors_of(*args)) {
    auto& order = found->dim_order;
    if (order.size() != found->sizes.size() || order.empty()) continue;
    if (last && order.size() > 2) {  // channels last
      std::iota(order.begin(), order.end(), uint8_t{0});
      std::rotate(order.begin() + 1, order.begin() + 2, order.end());
    } else if (random_.chance(50)) {
      std::swap(any_of(order, random_), any_of(order, random_));
    } else if (random_.chance(20)) {
      found->shape_dynamism = static_cast<fb::TensorShapeDynamism>(random_.below(3));
    }
  }
}

// Gives an input, a constant among them, memory of its own in an arena.
bool Edit::plan_memory(fb::TensorT& tensor) {
  if (tensor.allocation_info != nullptr) return true;
  if (plan_.non_const_buffer_sizes.size() < 2) return false;
  give_memory(tensor, 0);  // constants become inputs
  tensor.allocation_info = std::make_unique<fb::AllocationDetailsT>();
  tensor.allocation_info->memory_id = 1;
  const auto arena = static_cast<uint64_t>(plan_.non_const_buffer_sizes[1]);
  tensor.allocation_info->memory_offset_low = static_cast<uint32_t>(std::min(arena, kMaxBytes));
  repair(tensor);
  return true;
}

void Edit::overlap_memory() {
  auto* args = any_arguments();
  const std::vector<fb::TensorT*> found =
      args == nullptr ? std::vector<fb::TensorT*>() : tensors_of(*args);
  if (found.empty()) return;
  fb::TensorT& one = *found[random_.below(found.size())];
  fb::TensorT& other = *found[random_.below(found.size())];
  if (&one == &other || !plan_memory(one) || !plan_memory(other)) return;
  auto& place = *one.allocation_info;
  place = *other.allocation_info;
  if (random_.chance(30)) place.memory_offset_low += static_cast<uint32_t>(16 * random_.below(4));
  if (place.memory_id < plan_.non_const_buffer_sizes.size()) {
    int64_t& arena = plan_.non_const_buffer_sizes[place.memory_id];
    const uint64_t bytes = product(one.sizes, 0) * bytes_of(one.scalar_type);
    arena = std::max(arena, static_cast<int64_t>(place.memory_offset_low + bytes));
  }
}

void Edit::move_memory() {
  std::vector<fb::TensorT*> planned;
  for (auto& any : plan_.values) {
    auto* found = any->val.AsTensor();
    if (found != nullptr && found->allocation_info != nullptr) planned.push_back(found);
  }
  if (planned.empty()) return;
  auto& place = *any_of(planned, random_)->allocation_info;
  const auto& other = *any_of(planned, random_)->allocation_info;
  switch (random_.below(6)) {
    case 0:
    case 1:  // over another tensor, and not where its elements begin
      place.memory_id = other.memory_id;
      place.memory_offset_low = other.memory_offset_low + static_cast<uint32_t>(random_.below(9));
      break;
    case 2:
      place.memory_offset_low = static_cast<uint32_t>(random_.next() >> random_.below(64));
      break;
    case 3:
      place.memory_offset_high = static_cast<uint32_t>(random_.next() >> random_.below(64));
      break;
    case 4:
      place.memory_id = static_cast<uint32_t>(random_.below(4));
      break;
    default:
      any_of(plan_.non_const_buffer_sizes, random_) = Numbers(random_).next(64);
  }
}

}  // namespace executorch::fuzz
