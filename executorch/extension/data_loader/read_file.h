/// How releases 0.1 to 0.3 read a whole file, there in <executorch/util/read_file.h>. New code uses
/// FileDataLoader.
#pragma once

#include <executorch/extension/data_loader/file_handle.h>
#include <executorch/runtime/core/error.h>

#include <cstddef>
#include <memory>

namespace torch::executor::util {

/// The bytes of a file, at an address that is a multiple of 16.
inline ::executorch::runtime::Error read_file_content(const char* name,
                                                      std::shared_ptr<char>* file_data,
                                                      size_t* file_length) {
  using ::executorch::extension::internal::FileHandle;
  ET_ASSIGN_OR_RETURN(auto file, FileHandle::open(name));
  auto bytes = file.load(0, file.size(), alignof(std::max_align_t));
  if (!bytes.ok()) return bytes.error();
  using ::executorch::runtime::FreeableBuffer;
  auto owner = std::make_shared<FreeableBuffer>(std::move(bytes.get()));
  *file_length = owner->size();
  *file_data = std::shared_ptr<char>(owner, static_cast<char*>(const_cast<void*>(owner->data())));
  return ::executorch::runtime::Error::Ok;
}

/// Null on failure.
inline std::shared_ptr<char> read_file_content(const char* name) {
  std::shared_ptr<char> data;
  size_t length = 0;
  return read_file_content(name, &data, &length) == ::executorch::runtime::Error::Ok ? data
                                                                                     : nullptr;
}

}  // namespace torch::executor::util
