#include <executorch/exir/native/program_writer.h>
#include <executorch/exir/native/python_fields.h>
#include <executorch/schema/extended_header.h>
#include <executorch/schema/flat_tensor_generated.h>

namespace nb = nanobind;
namespace fb = flat_tensor_flatbuffer;

namespace executorch::exir {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

Offset<fb::TensorLayout> add_layout(FlatBufferBuilder& builder, nb::handle layout) {
  if (layout.is_none()) return 0;
  const auto sizes = builder.CreateVector(to_ints<int32_t>(layout[1], "TensorLayout.sizes"));
  const auto dim_order =
      builder.CreateVector(to_ints<uint8_t>(layout[2], "TensorLayout.dim_order"));
  const auto type = to_int<int8_t>(layout[0], "TensorLayout.scalar_type");
  return fb::CreateTensorLayout(builder, executorch_flatbuffer::ScalarType{type}, sizes, dim_order);
}

std::string build(nb::handle entries, const std::vector<SegmentRange>& ranges) {
  FlatBufferBuilder builder;
  std::vector<Offset<fb::NamedData>> named;
  for (nb::handle entry : entries) {
    const auto key = add_string(builder, entry[0]);
    const auto layout = add_layout(builder, entry[2]);
    named.push_back(fb::CreateNamedData(
        builder, key, to_int<uint32_t>(entry[1], "NamedData.segment_index"), layout));
  }
  std::vector<Offset<fb::DataSegment>> segments;
  for (const SegmentRange& range : ranges) {
    segments.push_back(fb::CreateDataSegment(builder, range.offset, range.size));
  }
  const auto segment_table = builder.CreateVector(segments);
  const auto named_table = builder.CreateVector(named);
  // The header that is spliced in keeps alignments up to 16.
  builder.Align(16);
  builder.Finish(fb::CreateFlatTensor(builder, 0, segment_table, named_table),
                 schema::kFlatTensorIdentifier);
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

}  // namespace

FileImage write_flat_tensor(nb::handle entries, const std::vector<const Segment*>& segments,
                            uint64_t segment_alignment) {
  const std::vector<SegmentRange> ranges = lay_out(segments, segment_alignment);
  const std::string flatbuffer = build(entries, ranges);
  const uint64_t spliced = schema::kFlatTensorHeaderLength;
  schema::FlatTensorHeader header;
  header.flatbuffer_offset = spliced;
  header.flatbuffer_size = flatbuffer.size();
  header.segment_base_offset =
      (flatbuffer.size() + spliced + segment_alignment - 1) / segment_alignment * segment_alignment;
  header.segment_data_size = ranges.empty() ? 0 : ranges.back().offset + ranges.back().size;
  std::string head(8 + spliced, '\0');
  schema::write_head(reinterpret_cast<const uint8_t*>(flatbuffer.data()), spliced, header,
                     reinterpret_cast<uint8_t*>(head.data()));
  FileImage image;
  image.append(std::move(head));
  image.append(flatbuffer.substr(8));
  image.pad_to(header.segment_base_offset);
  append_segments(image, segments, ranges);
  image.pad_to(header.segment_base_offset + header.segment_data_size);
  return image;
}

}  // namespace executorch::exir
