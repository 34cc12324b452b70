#include <executorch/extension/module/planned_memory.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <cstdlib>

namespace executorch::extension::internal {

using runtime::DeviceMemoryBuffer;
using runtime::Error;
using runtime::HierarchicalAllocator;
using runtime::MethodMeta;
using runtime::Program;
using runtime::Result;
using runtime::Span;
using runtime::etensor::Device;

namespace {

constexpr size_t kArenaAlignment = 64;
constexpr size_t kSharedArenas = 2;

Result<Device> device_of(const MethodMeta& meta, size_t index) {
  return meta.memory_planned_buffer_device(index);
}

}  // namespace

void ArenaBuffer::Free::operator()(void* block) const {
  std::free(block);
}

Result<ArenaBuffer> ArenaBuffer::create(size_t size) {
  void* const block =
      size > SIZE_MAX - kArenaAlignment ? nullptr : std::calloc(1, size + kArenaAlignment);
  ET_CHECK_OR_RETURN_ERROR(block != nullptr, MemoryAllocationFailed,
                           "Module: no memory for an arena of %zu bytes", size);
  const auto address = reinterpret_cast<uintptr_t>(block);
  const auto aligned = (address + kArenaAlignment - 1) & ~uintptr_t(kArenaAlignment - 1);
  return ArenaBuffer(block, reinterpret_cast<uint8_t*>(aligned), size);
}

Result<std::vector<ArenaBuffer>> make_shared_arenas(const Program& program) {
  std::vector<size_t> sizes;
  for (size_t m = 0; m < program.num_methods(); ++m) {
    ET_ASSIGN_OR_RETURN(const char* name, program.get_method_name(m));
    ET_ASSIGN_OR_RETURN(const MethodMeta meta, program.method_meta(name));
    const size_t n_arenas = std::min(meta.num_memory_planned_buffers(), kSharedArenas);
    sizes.resize(std::max(sizes.size(), n_arenas));
    for (size_t i = 0; i < n_arenas; ++i) {
      ET_ASSIGN_OR_RETURN(const Device device, device_of(meta, i));
      ET_CHECK_OR_RETURN_ERROR(device.is_cpu(), NotSupported,
                               "Module: arena %zu of '%s' is not in CPU memory, so methods cannot "
                               "share it",
                               i, name);
      ET_ASSIGN_OR_RETURN(const int64_t size, meta.memory_planned_buffer_size(i));
      sizes[i] = std::max(sizes[i], static_cast<size_t>(size));
    }
  }
  std::vector<ArenaBuffer> arenas;
  for (const size_t size : sizes) {
    ET_ASSIGN_OR_RETURN(ArenaBuffer arena, ArenaBuffer::create(size));
    arenas.push_back(std::move(arena));
  }
  return arenas;
}

Error PlannedMemory::add_arena(size_t size, Device device) {
  devices_.push_back(device);
  if (device.is_cpu()) {
    ET_ASSIGN_OR_RETURN(ArenaBuffer arena, ArenaBuffer::create(size));
    spans_.push_back(arena.span());
    buffers_.push_back(std::move(arena));
  } else {
    ET_ASSIGN_OR_RETURN(DeviceMemoryBuffer arena,
                        DeviceMemoryBuffer::create(size, device.type(), device.index()));
    spans_.push_back(arena.as_span());
    device_buffers_.push_back(std::move(arena));
  }
  return Error::Ok;
}

Result<std::unique_ptr<PlannedMemory>> PlannedMemory::create(
    const MethodMeta& meta, const std::vector<ArenaBuffer>& shared) {
  std::unique_ptr<PlannedMemory> memory(new PlannedMemory());
  for (size_t i = 0; i < meta.num_memory_planned_buffers(); ++i) {
    ET_ASSIGN_OR_RETURN(const int64_t size, meta.memory_planned_buffer_size(i));
    if (i < shared.size()) {
      memory->devices_.push_back(Device(runtime::etensor::DeviceType::CPU));
      memory->spans_.push_back({shared[i].span().data(), static_cast<size_t>(size)});
      continue;
    }
    ET_ASSIGN_OR_RETURN(const Device device, device_of(meta, i));
    ET_CHECK_OK_OR_RETURN_ERROR(memory->add_arena(static_cast<size_t>(size), device));
  }
  const Span<Span<uint8_t>> spans(memory->spans_.data(), memory->spans_.size());
  const bool all_on_cpu = memory->device_buffers_.empty();
  memory->allocator_ =
      all_on_cpu ? std::make_unique<HierarchicalAllocator>(spans)
                 : std::make_unique<HierarchicalAllocator>(
                       spans, Span<const Device>(memory->devices_.data(), memory->devices_.size()));
  return memory;
}

std::vector<Span<uint8_t>> PlannedMemory::cpu_arenas() const {
  std::vector<Span<uint8_t>> arenas;
  for (size_t i = 0; i < spans_.size(); ++i) {
    if (devices_[i].is_cpu()) arenas.push_back(spans_[i]);
  }
  return arenas;
}

}  // namespace executorch::extension::internal
