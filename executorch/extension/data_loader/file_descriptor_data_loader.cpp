#include <executorch/extension/data_loader/file_descriptor_data_loader.h>
#include <executorch/runtime/platform/log.h>

#include <charconv>
#include <string_view>

namespace executorch::extension {

using runtime::Error;
using runtime::Result;

namespace {

constexpr std::string_view kScheme = "fd:///";

Result<int> parse_descriptor(const char* uri) {
  const std::string_view text = uri == nullptr ? std::string_view() : uri;
  int fd = -1;
  if (text.substr(0, kScheme.size()) == kScheme) {
    const char* const end = text.data() + text.size();
    const auto [stop, status] = std::from_chars(text.data() + kScheme.size(), end, fd);
    if (status == std::errc() && stop == end && fd >= 0) return fd;
  }
  ET_LOG(Error, "file descriptor URI '%s' is not of the form fd:///<number>",
         uri == nullptr ? "(null)" : uri);
  return Error::InvalidArgument;
}

}  // namespace

Result<FileDescriptorDataLoader> FileDescriptorDataLoader::fromFileDescriptorUri(
    const char* file_descriptor_uri, size_t alignment) {
  const auto fd = parse_descriptor(file_descriptor_uri);
  if (!fd.ok()) return fd.error();
  ET_CHECK_OK_OR_RETURN_ERROR(internal::check_alignment(file_descriptor_uri, alignment));
  auto file = internal::FileHandle::adopt(fd.get(), file_descriptor_uri);
  if (!file.ok()) return file.error();
  return FileDescriptorDataLoader(std::move(file.get()), alignment);
}

}  // namespace executorch::extension
