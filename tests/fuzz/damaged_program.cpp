#include "damaged_program.h"

#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/runtime/executor/program.h>

#include <memory>
#include <vector>

namespace {

using namespace executorch::runtime;
using executorch::aten::Tensor;
using executorch::aten::TensorImpl;
using executorch::extension::BufferDataLoader;

constexpr size_t kMaxArenaBytes = 16 << 20;
constexpr size_t kMethodBytes = 1 << 20;
constexpr size_t kTempBytes = 1 << 20;

// Heap memory of exactly the size asked for, so that the sanitizer sees every byte beyond it.
using Bytes = std::unique_ptr<uint8_t[]>;

void read_metadata(const MethodMeta& meta) {
  for (size_t i = 0; i < meta.num_outputs(); ++i) {
    (void)meta.output_tag(i);
    (void)meta.output_tensor_meta(i);
  }
  for (size_t i = 0; i < meta.num_attributes(); ++i) (void)meta.attribute_tensor_meta(i);
  for (size_t i = 0; i < meta.num_backends(); ++i) {
    (void)meta.uses_backend(*meta.get_backend_name(i));
  }
}

void read_origins(const Program& program, const char* name) {
  auto identity = program.debug_identity();
  InstructionOrigin origin;
  for (size_t i = 0; identity.ok() && i < 64; ++i) {
    if (identity->instruction(name, 0, i, origin)) (void)OriginText(origin);
    (void)identity->delegated(name, 0, i, 1, origin);
    (void)identity->delegated(name, 0, i, "1", origin);
  }
}

// The arenas that a method asks for; false if they are too large to be given.
bool make_arenas(const MethodMeta& meta, std::vector<Bytes>& memory,
                 std::vector<Span<uint8_t>>& arenas) {
  size_t total = 0;
  for (size_t i = 0; i < meta.num_memory_planned_buffers(); ++i) {
    const auto bytes = static_cast<uint64_t>(*meta.memory_planned_buffer_size(i));
    if (bytes > kMaxArenaBytes - total) return false;
    total += bytes;
    memory.emplace_back(new uint8_t[bytes]());
    arenas.emplace_back(memory.back().get(), bytes);
  }
  return true;
}

Error set_input(Method& method, const MethodMeta& meta, size_t index, std::vector<Bytes>& memory) {
  const Tag tag = *meta.input_tag(index);
  if (tag != Tag::Tensor) return Error::Ok;
  auto info = meta.input_tensor_meta(index);
  if (!info.ok() || info->nbytes() > kMaxArenaBytes) return Error::NotSupported;
  memory.emplace_back(new uint8_t[info->nbytes()]());
  std::vector<int32_t> sizes(info->sizes().begin(), info->sizes().end());
  std::vector<uint8_t> order(info->dim_order().begin(), info->dim_order().end());
  std::vector<int32_t> strides(sizes.size() + 1);
  TensorImpl impl(info->scalar_type(), static_cast<ssize_t>(sizes.size()), sizes.data(),
                  memory.back().get(), order.data(), strides.data());
  return method.set_input(EValue(Tensor(&impl)), index);
}

void set_output(Method& method, const MethodMeta& meta, size_t index, std::vector<Bytes>& memory) {
  auto info = meta.output_tensor_meta(index);
  if (info.ok() && !info->is_memory_planned() && info->nbytes() <= kMaxArenaBytes) {
    memory.emplace_back(new uint8_t[info->nbytes()]());
    (void)method.set_output_data_ptr(memory.back().get(), info->nbytes(), index);
  }
}

Outcome run_method(const Program& program, const char* name, size_t max_instructions) {
  const MethodMeta meta = *program.method_meta(name);
  read_metadata(meta);
  std::vector<Bytes> memory;
  std::vector<Span<uint8_t>> arenas;
  if (!make_arenas(meta, memory, arenas)) return Outcome::NotLoaded;
  memory.emplace_back(new uint8_t[kMethodBytes]);
  MemoryAllocator method_allocator(kMethodBytes, memory.back().get());
  memory.emplace_back(new uint8_t[kTempBytes]);
  MemoryAllocator temp_allocator(kTempBytes, memory.back().get());
  HierarchicalAllocator planned({arenas.data(), arenas.size()});
  MemoryManager manager(&method_allocator, &planned, &temp_allocator);
  auto method = program.load_method(name, &manager);
  if (!method.ok()) return Outcome::NotLoaded;
  for (size_t i = 0; i < meta.num_inputs(); ++i) {
    if (set_input(method.get(), meta, i, memory) != Error::Ok) return Outcome::Failed;
  }
  for (size_t i = 0; i < meta.num_outputs(); ++i) set_output(method.get(), meta, i, memory);
  Error error = Error::Ok;
  for (size_t i = 0; error == Error::Ok && i < max_instructions; ++i) {
    error = method->experimental_step();
  }
  std::vector<EValue> outputs(method->outputs_size() + 1);
  (void)method->get_outputs(outputs.data(), outputs.size());
  return error == Error::EndOfMethod ? Outcome::Ran : Outcome::Failed;
}

}  // namespace

Outcome use_program(const uint8_t* data, size_t size, size_t max_instructions) {
  BufferDataLoader loader(data, size);
  auto program = Program::load(&loader, Program::Verification::InternalConsistency);
  if (!program.ok()) return Outcome::Refused;
  Outcome outcome = Outcome::Ran;
  for (size_t i = 0; i < program->num_methods(); ++i) {
    read_origins(*program, *program->get_method_name(i));
    const Outcome one = run_method(*program, *program->get_method_name(i), max_instructions);
    outcome = one < outcome ? one : outcome;
  }
  if (auto data_map = program->get_named_data_map(); data_map.ok()) {
    for (uint32_t i = 0; i < *(*data_map)->get_num_keys(); ++i) {
      (void)(*data_map)->get_data(*(*data_map)->get_key(i));
    }
  }
  return outcome;
}
