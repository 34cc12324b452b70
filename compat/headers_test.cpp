// Old include paths and old names still work, in C++17.

#include <all_rows.h>
#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/data_loader/file_data_loader.h>
#include <executorch/extension/data_loader/file_descriptor_data_loader.h>
#include <executorch/extension/data_loader/mmap_data_loader.h>
#include <executorch/extension/data_loader/shared_ptr_data_loader.h>
#include <executorch/extension/evalue_util/print_evalue.h>
#include <executorch/extension/flat_tensor/flat_tensor_data_map.h>
#include <executorch/extension/flat_tensor/serialize/serialize.h>
#include <executorch/extension/memory_allocator/cpu_caching_malloc_allocator.h>
#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/named_data_map/merged_data_map.h>
#include <executorch/extension/runner_util/inputs.h>
#include <executorch/extension/runner_util/managed_tensor.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/extension/tensor/tensor_impl_ptr.h>
#include <executorch/extension/threadpool/threadpool_guard.h>

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <type_traits>
#include <vector>

namespace {

namespace extension = executorch::extension;
namespace old = torch::executor;

static_assert(std::is_same_v<old::Module, extension::Module>);
static_assert(std::is_same_v<old::util::FileDataLoader, extension::FileDataLoader>);
static_assert(
    std::is_same_v<old::util::FileDescriptorDataLoader, extension::FileDescriptorDataLoader>);
static_assert(std::is_same_v<old::util::MmapDataLoader, extension::MmapDataLoader>);
static_assert(std::is_same_v<old::util::BufferDataLoader, extension::BufferDataLoader>);
static_assert(std::is_same_v<old::util::SharedPtrDataLoader, extension::SharedPtrDataLoader>);
static_assert(std::is_same_v<old::util::MallocMemoryAllocator, extension::MallocMemoryAllocator>);
static_assert(std::is_same_v<old::util::BufferCleanup, extension::BufferCleanup>);
static_assert(std::is_same_v<old::util::evalue_edge_items, extension::evalue_edge_items>);
static_assert(
    std::is_same_v<torch::executorch::threadpool::ThreadPool, extension::threadpool::ThreadPool>);
static_assert(std::is_move_constructible_v<old::Module>);
static_assert(std::is_constructible_v<old::Module, const char*, old::Module::MlockConfig>);

using TracerPtr = std::unique_ptr<executorch::runtime::EventTracer>;
using AllocatorPtr = std::unique_ptr<executorch::runtime::MemoryAllocator>;
using LoaderPtr = std::unique_ptr<executorch::runtime::DataLoader>;
static_assert(std::is_constructible_v<old::Module, LoaderPtr, AllocatorPtr, TracerPtr>);
static_assert(std::is_constructible_v<old::Module, LoaderPtr, AllocatorPtr, AllocatorPtr>);
static_assert(std::is_constructible_v<old::Module, LoaderPtr, std::nullptr_t, std::nullptr_t>);

TEST(ManagedTensor, SharesDataAndResizesWithinItsCapacity) {
  std::vector<int64_t> data{1, 2, 3, 4, 5, 6, 7, 8};
  old::ManagedTensor managed(data.data(), {1, 8}, old::ScalarType::Long);
  EXPECT_EQ(managed.get_tensor().mutable_data_ptr<int64_t>(), data.data());
  managed.resize({1, 4});
  EXPECT_EQ(managed.get_aliasing_tensor().numel(), 4);
  old::ManagedTensor with_count(data.data(), 8, {2, 4}, old::ScalarType::Long);
  EXPECT_EQ(with_count.get_tensor().size(1), 4);
}

TEST(ReadFile, GivesTheBytesOrAnError) {
  const std::string path = ::testing::TempDir() + "compat_read_file";
  std::ofstream(path) << "abc";
  std::shared_ptr<char> data;
  size_t size = 0;
  ASSERT_EQ(old::util::read_file_content(path.c_str(), &data, &size), old::Error::Ok);
  EXPECT_EQ(std::string(data.get(), size), "abc");
  EXPECT_EQ(old::util::read_file_content("/no/such/file"), nullptr);
  std::remove(path.c_str());
}

TEST(FillOnes, SetsEveryElement) {
  auto tensor = extension::zeros({2, 2});
  old::util::FillOnes(*tensor);
  EXPECT_EQ(tensor->const_data_ptr<float>()[3], 1.0f);
}

}  // namespace
