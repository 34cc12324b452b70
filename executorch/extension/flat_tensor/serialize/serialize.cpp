#include <executorch/extension/flat_tensor/serialize/serialize.h>
#include <executorch/runtime/core/allocation_failure.h>
#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>
#include <executorch/runtime/core/exec_aten/util/layout_of.h>
#include <executorch/runtime/platform/log.h>
#include <executorch/schema/extended_header.h>
#include <executorch/schema/flat_tensor_generated.h>
#include <executorch/schema/output_file.h>

#include <cstring>
#include <functional>
#include <vector>

namespace executorch::extension::flat_tensor {

using aten::Tensor;
using runtime::Error;

namespace {

using TensorMap = std::map<std::string, Tensor>;

uint64_t align_up(uint64_t n, uint64_t alignment) {
  return (n + alignment - 1) / alignment * alignment;
}

// The largest page of memory. Files are padded to the alignment.
constexpr size_t kMostAligned = size_t{1} << 30;

Error check_arguments(const TensorMap& tensors, size_t alignment) {
  ET_CHECK_OR_RETURN_ERROR(alignment != 0 && (alignment & (alignment - 1)) == 0, InvalidArgument,
                           "save_ptd: alignment %zu is not a power of two", alignment);
  ET_CHECK_OR_RETURN_ERROR(alignment <= kMostAligned, InvalidArgument,
                           "save_ptd: alignment %zu, expected at most %zu", alignment,
                           kMostAligned);
  for (const auto& [name, tensor] : tensors) {
    ET_CHECK_OR_RETURN_ERROR(!name.empty(), InvalidArgument, "save_ptd: a tensor has no name");
    ET_CHECK_OR_RETURN_ERROR(name.find('\0') == std::string::npos, InvalidArgument,
                             "save_ptd: the name of a tensor, '%s...', holds a zero byte",
                             name.c_str());
    ET_CHECK_OR_RETURN_ERROR(tensor.unsafeGetTensorImpl() != nullptr, InvalidArgument,
                             "save_ptd: tensor '%s' is undefined", name.c_str());
    ET_CHECK_OR_RETURN_ERROR(tensor.nbytes() == 0 || tensor.const_data_ptr() != nullptr,
                             InvalidArgument, "save_ptd: tensor '%s' has no data", name.c_str());
    const auto order = runtime::internal::dim_order_of(tensor);
    ET_CHECK_OR_RETURN_ERROR(
        order.ok() && runtime::validate_dim_order(order->data(), order->size()), InvalidArgument,
        "save_ptd: tensor '%s' has no sound dim order", name.c_str());
  }
  return Error::Ok;
}

void build(flatbuffers::FlatBufferBuilder& builder, const TensorMap& tensors, size_t alignment) {
  namespace fb = flat_tensor_flatbuffer;
  std::vector<flatbuffers::Offset<fb::NamedData>> entries;
  std::vector<flatbuffers::Offset<fb::DataSegment>> segments;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const auto sizes = builder.CreateVector(tensor.sizes().data(), tensor.sizes().size());
    const auto dims = runtime::internal::dim_order_of(tensor);
    const auto order = builder.CreateVector(dims->data(), dims->size());
    const auto layout = fb::CreateTensorLayout(
        builder, static_cast<executorch_flatbuffer::ScalarType>(tensor.scalar_type()), sizes,
        order);
    const auto key = builder.CreateString(name);
    entries.push_back(
        fb::CreateNamedData(builder, key, static_cast<uint32_t>(segments.size()), layout));
    segments.push_back(fb::CreateDataSegment(builder, offset, tensor.nbytes()));
    offset = align_up(offset + tensor.nbytes(), alignment);
  }
  const auto segment_list = builder.CreateVector(segments);
  const auto entry_list = builder.CreateVector(entries);
  fb::FinishFlatTensorBuffer(
      builder, fb::CreateFlatTensor(builder, kSchemaVersion, segment_list, entry_list));
}

/// Takes the file's bytes, in order.
using Put = std::function<void(const void* data, size_t n_bytes)>;

void pad(const Put& put, uint64_t count) {
  const std::vector<char> zeros(count);
  put(zeros.data(), zeros.size());
}

// Aligned segments, no padding after the last; returns their total size.
uint64_t segment_bytes(const TensorMap& tensors, size_t alignment) {
  uint64_t end = 0;
  for (const auto& [name, tensor] : tensors) end = align_up(end, alignment) + tensor.nbytes();
  return end;
}

void write(const Put& put, const TensorMap& tensors, size_t alignment) {
  flatbuffers::FlatBufferBuilder builder;
  build(builder, tensors, alignment);
  const size_t spliced = schema::kFlatTensorHeaderLength;
  schema::FlatTensorHeader header;
  header.flatbuffer_offset = spliced;
  header.flatbuffer_size = builder.GetSize();
  header.segment_base_offset = align_up(spliced + builder.GetSize(), alignment);
  header.segment_data_size = segment_bytes(tensors, alignment);
  std::vector<uint8_t> head(8 + spliced);
  schema::write_head(builder.GetBufferPointer(), spliced, header, head.data());
  put(head.data(), head.size());
  put(builder.GetBufferPointer() + 8, builder.GetSize() - 8);
  pad(put, header.segment_base_offset - spliced - builder.GetSize());
  uint64_t end = 0;
  for (const auto& [name, tensor] : tensors) {
    pad(put, align_up(end, alignment) - end);
    put(tensor.const_data_ptr(), tensor.nbytes());
    end = align_up(end, alignment) + tensor.nbytes();
  }
}

}  // namespace

Error save_ptd(std::ostream& out, const TensorMap& tensor_map, const size_t tensor_alignment) {
  ET_CHECK_OK_OR_RETURN_ERROR(check_arguments(tensor_map, tensor_alignment));
  return runtime::catch_allocation_failure("save_ptd", [&]() -> Error {
    const Put put = [&](const void* data, size_t n_bytes) {
      out.write(static_cast<const char*>(data), static_cast<std::streamsize>(n_bytes));
    };
    write(put, tensor_map, tensor_alignment);
    ET_CHECK_OR_RETURN_ERROR(out.flush().good(), AccessFailed, "save_ptd: cannot write the stream");
    return Error::Ok;
  });
}

Error save_ptd(const std::string& path, const TensorMap& tensor_map,
               const size_t tensor_alignment) {
  ET_CHECK_OK_OR_RETURN_ERROR(check_arguments(tensor_map, tensor_alignment));
  return runtime::catch_allocation_failure("save_ptd", [&]() -> Error {
    schema::OutputFile file;
    int failed = file.open(path);
    const Put put = [&](const void* data, size_t n_bytes) {
      if (failed == 0) failed = file.write(data, n_bytes);
    };
    write(put, tensor_map, tensor_alignment);
    if (failed == 0) failed = file.keep();
    ET_CHECK_OR_RETURN_ERROR(failed == 0, AccessFailed, "save_ptd: cannot write %s: %s",
                             path.c_str(), std::strerror(failed));
    return Error::Ok;
  });
}

}  // namespace executorch::extension::flat_tensor
