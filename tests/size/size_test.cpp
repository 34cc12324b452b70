// The smallest useful program: load a .pte from memory, load its first method, run it once. Built
// without kernels to measure the runtime; a program that calls none runs.
//
//   size_test model.pte

#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/runtime.h>

#include <cstdint>
#include <cstdio>

using executorch::extension::BufferDataLoader;
using executorch::runtime::Error;
using executorch::runtime::HierarchicalAllocator;
using executorch::runtime::MemoryAllocator;
using executorch::runtime::MemoryManager;
using executorch::runtime::Method;
using executorch::runtime::Program;
using executorch::runtime::Result;
using executorch::runtime::Span;

namespace {

alignas(16) uint8_t file[1 << 20];
alignas(16) uint8_t method_memory[1 << 16];
alignas(16) uint8_t temp_memory[1 << 16];
alignas(16) uint8_t planned_memory[1 << 20];
constexpr size_t kMaxArenas = 4;

Error run(size_t file_bytes) {
  BufferDataLoader loader(file, file_bytes);
  Result<Program> program = Program::load(&loader, Program::Verification::InternalConsistency);
  ET_CHECK_OK_OR_RETURN_ERROR(program.error());
  ET_ASSIGN_OR_RETURN(const char* const name, program->get_method_name(0));
  ET_ASSIGN_OR_RETURN(const auto meta, program->method_meta(name));

  Span<uint8_t> arenas[kMaxArenas];
  const size_t n_arenas = meta.num_memory_planned_buffers();
  size_t used = 0;
  for (size_t i = 0; i < n_arenas && i < kMaxArenas; ++i) {
    ET_ASSIGN_OR_RETURN(const int64_t bytes, meta.memory_planned_buffer_size(i));
    if (static_cast<uint64_t>(bytes) > sizeof(planned_memory) - used) {
      return Error::MemoryAllocationFailed;
    }
    arenas[i] = {planned_memory + used, static_cast<size_t>(bytes)};
    used += (static_cast<size_t>(bytes) + 15) / 16 * 16;
  }
  HierarchicalAllocator planned({arenas, n_arenas < kMaxArenas ? n_arenas : kMaxArenas});
  MemoryAllocator method_allocator(sizeof(method_memory), method_memory);
  MemoryAllocator temp_allocator(sizeof(temp_memory), temp_memory);
  MemoryManager memory(&method_allocator, &planned, &temp_allocator);
  Result<Method> method = program->load_method(name, &memory);
  ET_CHECK_OK_OR_RETURN_ERROR(method.error());
  return method->execute();
}

}  // namespace

int main(int argc, char** argv) {
  executorch::runtime::runtime_init();
  std::FILE* const source = argc > 1 ? std::fopen(argv[1], "rb") : nullptr;
  if (source == nullptr) {
    std::fprintf(stderr, "usage: size_test model.pte\n");
    return 2;
  }
  const size_t file_bytes = std::fread(file, 1, sizeof(file), source);
  std::fclose(source);
  const Error error = run(file_bytes);
  std::printf("%s\n", executorch::runtime::to_string(error));
  return error == Error::Ok ? 0 : 1;
}
