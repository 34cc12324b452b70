#include <executorch/devtools/bundled_program/bundled_program.h>
#include <executorch/devtools/bundled_program/bundled_program_generated.h>
#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/data_loader/file_handle.h>
#include <executorch/extension/data_loader/shared_ptr_data_loader.h>
#include <executorch/extension/module/bundled_module.h>
#include <executorch/runtime/core/allocation_failure.h>
#include <executorch/runtime/platform/log.h>

namespace executorch::extension::ET_BUNDLED_MODULE_NAMESPACE {

using runtime::Error;
using runtime::EValue;
using runtime::Result;

namespace {

/// Null without a bundle: the module then says that there is no program.
std::unique_ptr<BufferDataLoader> loader_of(const void* bundle) {
  if (bundle == nullptr) return nullptr;
  const auto* const program = bundled_program_flatbuffer::GetBundledProgram(bundle)->program();
  return std::make_unique<BufferDataLoader>(program->data(), program->size());
}

}  // namespace

BundledModule::BundledModule(const void* bundle, std::unique_ptr<runtime::DataLoader> program,
                             std::unique_ptr<runtime::MemoryAllocator> memory_allocator,
                             std::unique_ptr<runtime::MemoryAllocator> temp_allocator,
                             std::unique_ptr<runtime::EventTracer> event_tracer,
                             std::unique_ptr<runtime::DataLoader> data_map_loader)
    : Module(std::move(program), std::move(memory_allocator), std::move(temp_allocator),
             std::move(event_tracer), std::move(data_map_loader)),
      bundle_(bundle) {}

BundledModule::BundledModule(const void* bundled_program_ptr,
                             std::unique_ptr<runtime::MemoryAllocator> memory_allocator,
                             std::unique_ptr<runtime::MemoryAllocator> temp_allocator,
                             std::unique_ptr<runtime::EventTracer> event_tracer,
                             std::unique_ptr<runtime::DataLoader> data_map_loader)
    : BundledModule(bundled_program_ptr, loader_of(bundled_program_ptr),
                    std::move(memory_allocator), std::move(temp_allocator), std::move(event_tracer),
                    std::move(data_map_loader)) {}

Result<std::unique_ptr<BundledModule>> BundledModule::from_file(
    const std::string& file_path, std::unique_ptr<runtime::MemoryAllocator> memory_allocator,
    std::unique_ptr<runtime::MemoryAllocator> temp_allocator,
    std::unique_ptr<runtime::EventTracer> event_tracer,
    std::unique_ptr<runtime::DataLoader> data_map_loader) {
  ET_ASSIGN_OR_RETURN(const internal::FileHandle file,
                      internal::FileHandle::open(file_path.c_str()));
  // As whatever holds a program.
  constexpr size_t kAlignment = 16;
  ET_ASSIGN_OR_RETURN(runtime::FreeableBuffer bytes, file.load(0, file.size(), kAlignment));
  auto* const data = const_cast<void*>(bytes.data());
  const void* program = nullptr;
  size_t size = 0;
  const Error error =
      executorch::bundled_program::get_program_data(data, bytes.size(), &program, &size);
  ET_CHECK_OK_OR_RETURN_ERROR(error, "%s is not used", file_path.c_str());
  return runtime::catch_allocation_failure(
      file_path.c_str(), [&]() -> Result<std::unique_ptr<BundledModule>> {
        // The loader is an owner: programs are shared with other modules.
        const auto owned = std::make_shared<runtime::FreeableBuffer>(std::move(bytes));
        auto loader = std::make_unique<SharedPtrDataLoader>(
            std::shared_ptr<void>(owned, const_cast<void*>(program)), size);
        return std::unique_ptr<BundledModule>(new BundledModule(
            data, std::move(loader), std::move(memory_allocator), std::move(temp_allocator),
            std::move(event_tracer), std::move(data_map_loader)));
      });
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // the one way to the Method itself

Error BundledModule::load_inputs(const std::string& method_name, size_t testset_idx) {
  ET_ASSIGN_OR_RETURN(runtime::Method* const loaded, method(method_name));
  return executorch::bundled_program::load_bundled_input(*loaded, bundle_, testset_idx);
}

Result<std::vector<EValue>> BundledModule::execute(const std::string& method_name,
                                                   size_t testset_idx) {
  ET_CHECK_OK_OR_RETURN_ERROR(load_inputs(method_name, testset_idx));
  return Module::execute(method_name, std::vector<EValue>());
}

Error BundledModule::verify_method_outputs(const std::string& method_name, size_t testset_idx,
                                           double rtol, double atol) {
  ET_ASSIGN_OR_RETURN(runtime::Method* const loaded, method(method_name));
  return executorch::bundled_program::verify_method_outputs(*loaded, bundle_, testset_idx, rtol,
                                                            atol);
}

#pragma GCC diagnostic pop

}  // namespace executorch::extension::ET_BUNDLED_MODULE_NAMESPACE
