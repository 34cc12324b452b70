#include <executorch/extension/flat_tensor/serialize/flat_tensor_header.h>
#include <executorch/runtime/platform/log.h>
#include <executorch/schema/extended_header.h>

namespace executorch::extension {

using runtime::Error;
using runtime::Result;

Result<FlatTensorHeader> FlatTensorHeader::Parse(const void* data, size_t size) {
  schema::FlatTensorHeader header;
  switch (schema::parse_header(data, size, header)) {
    case schema::HeaderStatus::Found:
      return FlatTensorHeader{header.flatbuffer_offset, header.flatbuffer_size,
                              header.segment_base_offset, header.segment_data_size};
    case schema::HeaderStatus::Absent:
      ET_LOG(Error, "external data: no header magic FH01 at byte 8");
      return Error::NotFound;
    case schema::HeaderStatus::Short:
      ET_LOG(Error, "external data: %zu bytes are too few for a header, which needs %zu", size,
             kNumHeadBytes);
      return Error::InvalidArgument;
    case schema::HeaderStatus::Corrupt:
      break;
  }
  ET_LOG(Error, "external data: the header claims fewer bytes than its %u", kHeaderExpectedLength);
  return Error::InvalidExternalData;
}

}  // namespace executorch::extension
