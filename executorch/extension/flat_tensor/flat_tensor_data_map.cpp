#include <executorch/extension/flat_tensor/flat_tensor_data_map.h>
#include <executorch/runtime/core/allocation_failure.h>
#include <executorch/runtime/platform/log.h>
#include <executorch/schema/extended_header.h>
#include <executorch/schema/flat_tensor_generated.h>

#include <cinttypes>
#include <cstring>

namespace executorch::extension {

using ET_RUNTIME_NAMESPACE::TensorLayout;
using flat_tensor_flatbuffer::DataSegment;
using flat_tensor_flatbuffer::FlatTensor;
using flat_tensor_flatbuffer::NamedData;
using runtime::DataLoader;
using runtime::Error;
using runtime::FreeableBuffer;
using runtime::Result;
using runtime::Span;

namespace {

Result<TensorLayout> make_layout(const flat_tensor_flatbuffer::TensorLayout* layout) {
  const auto* sizes = layout->sizes();
  const auto* dim_order = layout->dim_order();
  const size_t rank = sizes == nullptr ? 0 : sizes->size();
  const size_t order_rank = dim_order == nullptr ? 0 : dim_order->size();
  auto created = TensorLayout::create(
      Span<const int32_t>(rank == 0 ? nullptr : sizes->data(), rank),
      Span<const uint8_t>(order_rank == 0 ? nullptr : dim_order->data(), order_rank),
      static_cast<aten::ScalarType>(layout->scalar_type()));
  if (!created.ok()) return created.error();
  return TensorLayout(created.get());
}

Error check_header(const FlatTensorHeader& header, size_t file_size) {
  const uint64_t size = file_size;
  ET_CHECK_OR_RETURN_ERROR(
      header.flatbuffer_offset <= size && header.flatbuffer_size <= size - header.flatbuffer_offset,
      InvalidExternalData,
      "external data: flatbuffer of %" PRIu64 " + %" PRIu64 " bytes in a file of %" PRIu64,
      header.flatbuffer_offset, header.flatbuffer_size, size);
  ET_CHECK_OR_RETURN_ERROR(header.segment_base_offset <= size &&
                               header.segment_data_size <= size - header.segment_base_offset,
                           InvalidExternalData,
                           "external data: segments of %" PRIu64 " bytes at offset %" PRIu64
                           " in a file of %" PRIu64,
                           header.segment_data_size, header.segment_base_offset, size);
  ET_CHECK_OR_RETURN_ERROR(
      header.segment_base_offset >= header.flatbuffer_offset + header.flatbuffer_size,
      InvalidExternalData,
      "external data: segments at offset %" PRIu64
      " overlap the flatbuffer, which ends at %" PRIu64,
      header.segment_base_offset, header.flatbuffer_offset + header.flatbuffer_size);
  return Error::Ok;
}

Error check_segments(const FlatTensor* root, const FlatTensorHeader& header) {
  const auto& segments = *root->segments();
  for (uint32_t i = 0; i < segments.size(); ++i) {
    const DataSegment* segment = segments[i];
    ET_CHECK_OR_RETURN_ERROR(segment->offset() <= header.segment_data_size &&
                                 segment->size() <= header.segment_data_size - segment->offset(),
                             InvalidExternalData,
                             "external data: segment %" PRIu32 " of %" PRIu64 " bytes at %" PRIu64
                             ", all segments together have %" PRIu64,
                             i, segment->size(), segment->offset(), header.segment_data_size);
  }
  return Error::Ok;
}

Error check_entry(const FlatTensor* root, uint32_t i, const NamedData* data) {
  const char* const key = data->key() == nullptr ? "" : data->key()->c_str();
  ET_CHECK_OR_RETURN_ERROR(std::strlen(key) == (data->key() == nullptr ? 0 : data->key()->size()),
                           InvalidExternalData,
                           "external data: the key of entry %" PRIu32 " holds a zero byte", i);
  ET_CHECK_OR_RETURN_ERROR(*key != '\0', InvalidExternalData,
                           "external data: entry %" PRIu32 " has no key", i);
  const uint32_t n_segments = root->segments()->size();
  ET_CHECK_OR_RETURN_ERROR(data->segment_index() < n_segments, InvalidExternalData,
                           "external data: '%s' names segment %" PRIu32 " of %" PRIu32, key,
                           data->segment_index(), n_segments);
  if (data->tensor_layout() == nullptr) return Error::Ok;
  const auto layout = make_layout(data->tensor_layout());
  ET_CHECK_OR_RETURN_ERROR(layout.ok(), InvalidExternalData,
                           "external data: '%s' has no sound tensor layout", key);
  const uint64_t bytes = root->segments()->Get(data->segment_index())->size();
  ET_CHECK_OR_RETURN_ERROR(layout->nbytes() <= bytes, InvalidExternalData,
                           "external data: '%s' is a tensor of %zu bytes in a segment of %" PRIu64,
                           key, layout->nbytes(), bytes);
  return Error::Ok;
}

// The loader may hand out memory at any address, while the flatbuffer holds 64-bit integers.
Error check_alignment(const void* flatbuffer) {
  ET_CHECK_OR_RETURN_ERROR(
      reinterpret_cast<uintptr_t>(flatbuffer) % alignof(uint64_t) == 0, InvalidArgument,
      "external data: loaded to an address that is no multiple of %zu", alignof(uint64_t));
  return Error::Ok;
}

Result<FlatTensorHeader> read_header(DataLoader* loader, size_t file_size) {
  ET_CHECK_OR_RETURN_ERROR(
      file_size >= FlatTensorHeader::kNumHeadBytes, InvalidExternalData,
      "external data: a file of %zu bytes is too short, the header alone needs %zu", file_size,
      FlatTensorHeader::kNumHeadBytes);
  ET_ASSIGN_OR_RETURN(
      const FreeableBuffer head,
      runtime::load_exactly(*loader, 0, FlatTensorHeader::kNumHeadBytes,
                            DataLoader::SegmentInfo(DataLoader::SegmentInfo::Type::External)));
  ET_CHECK_OR_RETURN_ERROR(schema::check_identifier(head.data(), schema::kFlatTensorIdentifier) ==
                               schema::Identifier::Match,
                           InvalidExternalData,
                           "external data: found file identifier '%.4s', expected FT01",
                           static_cast<const char*>(head.data()) + 4);
  auto header = FlatTensorHeader::Parse(head.data(), head.size());
  if (!header.ok()) return Error::InvalidExternalData;
  ET_CHECK_OK_OR_RETURN_ERROR(check_header(header.get(), file_size));
  return header;
}

Result<const FlatTensor*> verify_flatbuffer(const FreeableBuffer& bytes) {
  ET_CHECK_OR_RETURN_ERROR(schema::check_identifier(bytes.data(), schema::kFlatTensorIdentifier) ==
                               schema::Identifier::Match,
                           InvalidExternalData,
                           "external data: found file identifier '%.4s', expected FT01",
                           static_cast<const char*>(bytes.data()) + 4);
  flatbuffers::Verifier verifier(static_cast<const uint8_t*>(bytes.data()), bytes.size());
  ET_CHECK_OR_RETURN_ERROR(flat_tensor_flatbuffer::VerifyFlatTensorBuffer(verifier),
                           InvalidExternalData, "external data: the flatbuffer is damaged");
  const FlatTensor* root = flat_tensor_flatbuffer::GetFlatTensor(bytes.data());
  ET_CHECK_OR_RETURN_ERROR(root->segments() != nullptr && root->named_data() != nullptr,
                           InvalidExternalData, "external data: the list of %s is missing",
                           root->segments() == nullptr ? "segments" : "named data");
  ET_CHECK_OR_RETURN_ERROR(root->version() <= FlatTensorDataMap::kMaxSupportedSchemaVersion,
                           InvalidExternalData,
                           "external data: the schema has version %" PRIu32
                           "; this runtime reads versions up to %" PRIu32,
                           root->version(), FlatTensorDataMap::kMaxSupportedSchemaVersion);
  return root;
}

}  // namespace

Result<FlatTensorDataMap> FlatTensorDataMap::load(DataLoader* loader) {
  ET_CHECK_OR_RETURN_ERROR(loader != nullptr, InvalidArgument, "external data: no data loader");
  const DataLoader::SegmentInfo info(DataLoader::SegmentInfo::Type::External);
  ET_ASSIGN_OR_RETURN(const size_t file_size, loader->size());
  ET_ASSIGN_OR_RETURN(const FlatTensorHeader header, read_header(loader, file_size));
  ET_ASSIGN_OR_RETURN(
      FreeableBuffer flatbuffer,
      runtime::load_exactly(*loader, 0, header.flatbuffer_offset + header.flatbuffer_size, info));
  ET_CHECK_OK_OR_RETURN_ERROR(check_alignment(flatbuffer.data()));
  ET_ASSIGN_OR_RETURN(const FlatTensor* root, verify_flatbuffer(flatbuffer));
  ET_CHECK_OK_OR_RETURN_ERROR(check_segments(root, header));
  return runtime::catch_allocation_failure("external data", [&]() -> Result<FlatTensorDataMap> {
    Index index;
    for (uint32_t i = 0; i < root->named_data()->size(); ++i) {
      const NamedData* data = root->named_data()->Get(i);
      ET_CHECK_OK_OR_RETURN_ERROR(check_entry(root, i, data));
      ET_CHECK_OR_RETURN_ERROR(index.emplace(data->key()->string_view(), data).second,
                               InvalidExternalData, "external data: key '%s' appears twice",
                               data->key()->c_str());
    }
    return FlatTensorDataMap(header, std::move(flatbuffer), root, loader, std::move(index));
  });
}

Result<const NamedData*> FlatTensorDataMap::find(std::string_view key) const {
  const auto found = index_.find(key);
  if (found == index_.end()) return Error::NotFound;
  return found->second;
}

const DataSegment* FlatTensorDataMap::segment_of(const NamedData* data) const {
  return root_->segments()->Get(data->segment_index());
}

Result<const TensorLayout> FlatTensorDataMap::get_tensor_layout(std::string_view key) const {
  ET_ASSIGN_OR_RETURN(const NamedData* data, find(key));
  ET_CHECK_OR_RETURN_ERROR(data->tensor_layout() != nullptr, InvalidArgument,
                           "external data: '%s' is opaque bytes, it has no tensor layout",
                           data->key()->c_str());
  ET_ASSIGN_OR_RETURN(const TensorLayout layout, make_layout(data->tensor_layout()));
  return layout;
}

Result<FreeableBuffer> FlatTensorDataMap::get_data(std::string_view key) const {
  ET_ASSIGN_OR_RETURN(const NamedData* data, find(key));
  const DataSegment* segment = segment_of(data);
  return runtime::load_exactly(
      *loader_, header_.segment_base_offset + segment->offset(), segment->size(),
      DataLoader::SegmentInfo(DataLoader::SegmentInfo::Type::External, data->segment_index(),
                              data->key()->c_str()));
}

Error FlatTensorDataMap::load_data_into(std::string_view key, void* buffer, size_t size) const {
  ET_ASSIGN_OR_RETURN(const NamedData* data, find(key));
  const DataSegment* segment = segment_of(data);
  ET_CHECK_OR_RETURN_ERROR(size <= segment->size(), InvalidArgument,
                           "external data: %zu bytes asked of '%s', it has %" PRIu64, size,
                           data->key()->c_str(), segment->size());
  return loader_->load_into(header_.segment_base_offset + segment->offset(), size,
                            DataLoader::SegmentInfo(DataLoader::SegmentInfo::Type::External,
                                                    data->segment_index(), data->key()->c_str()),
                            buffer);
}

Result<uint32_t> FlatTensorDataMap::get_num_keys() const {
  return root_->named_data()->size();
}

Result<const char*> FlatTensorDataMap::get_key(uint32_t index) const {
  const uint32_t n_keys = root_->named_data()->size();
  ET_CHECK_OR_RETURN_ERROR(index < n_keys, InvalidArgument,
                           "external data: key %" PRIu32 " of %" PRIu32, index, n_keys);
  return root_->named_data()->Get(index)->key()->c_str();
}

}  // namespace executorch::extension
