#include <executorch/devtools/inspect/describe.h>
#include <executorch/devtools/inspect/describe_plan.h>
#include <executorch/devtools/inspect/file_loader.h>
#include <executorch/devtools/inspect/other_kind.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/tensor_layout.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/schema/extended_header.h>
#include <executorch/schema/flat_tensor_generated.h>
#include <executorch/schema/program_generated.h>

#include <filesystem>

namespace executorch::devtools {
namespace {

using runtime::DataLoader;
using runtime::Error;
using runtime::FreeableBuffer;
namespace fb = executorch_flatbuffer;
namespace ft = flat_tensor_flatbuffer;

FreeableBuffer read(const FileLoader& loader, const std::string& path, size_t size) {
  auto bytes =
      loader.load(0, size, DataLoader::SegmentInfo(DataLoader::SegmentInfo::Type::Program));
  if (!bytes.ok()) {
    throw InspectError{path + ": " + std::to_string(size) + " bytes cannot be read"};
  }
  return std::move(*bytes);
}

template <typename Segments>
Json describe_segments(const Segments* segments) {
  Json list = Json::array();
  for (uint32_t i = 0; segments != nullptr && i < segments->size(); ++i) {
    list.push_back({{"offset", segments->Get(i)->offset()}, {"bytes", segments->Get(i)->size()}});
  }
  return list;
}

Json describe_blobs(const fb::SubsegmentOffsets* table) {
  Json offsets = Json::array();
  for (uint32_t i = 0;
       table != nullptr && table->offsets() != nullptr && i < table->offsets()->size(); ++i) {
    offsets.push_back(table->offsets()->Get(i));
  }
  return {{"segment", table == nullptr ? 0 : table->segment_index()}, {"offsets", offsets}};
}

Json describe_constants(const fb::Program& program) {
  const auto* buffers = program.constant_buffer();
  if (buffers == nullptr || buffers->size() == 0) {
    return describe_blobs(program.constant_segment());
  }
  Json sizes = Json::array();
  for (const auto* buffer : *buffers) {
    sizes.push_back(buffer->storage() == nullptr ? 0 : buffer->storage()->size());
  }
  return {{"inline_bytes", sizes}};
}

Json describe_program(const FileLoader& loader, const std::string& path) {
  FileLoader& mutable_loader = const_cast<FileLoader&>(loader);
  const auto verified = runtime::Program::load(&mutable_loader);
  if (!verified.ok()) {
    throw InspectError{path + ": not a valid program (" + to_string(verified.error()) + ")" +
                       other_kind(path)};
  }
  const size_t file_bytes = *loader.size();
  const FreeableBuffer head = read(loader, path, schema::kHeadBytes);
  schema::ProgramHeader header{file_bytes, 0, 0};
  (void)schema::parse_header(head.data(), head.size(), header);
  const FreeableBuffer bytes = read(loader, path, header.program_size);
  const fb::Program& program = *fb::GetProgram(bytes.data());

  Json out = {{"kind", "program"},
              {"version", program.version()},
              {"file_bytes", file_bytes},
              {"program_bytes", header.program_size},
              {"segment_base", header.segment_base_offset},
              {"segment_bytes", header.segment_data_size},
              {"segments", describe_segments(program.segments())},
              {"constants", describe_constants(program)}};
  const auto* states = program.mutable_data_segments();
  out["initial_states"] =
      describe_blobs(states == nullptr || states->size() == 0 ? nullptr : states->Get(0));
  out["named_data"] = Json::array();
  for (uint32_t i = 0; program.named_data() != nullptr && i < program.named_data()->size(); ++i) {
    const auto* entry = program.named_data()->Get(i);
    out["named_data"].push_back(
        {{"key", entry->key()->str()},
         {"segment", entry->segment_index()},
         {"bytes", program.segments()->Get(entry->segment_index())->size()}});
  }
  const auto identity = verified->debug_identity();
  out["methods"] = Json::array();
  for (const auto* plan : *program.execution_plan()) {
    out["methods"].push_back(describe_plan(program, *plan, identity.ok() ? &*identity : nullptr));
  }
  return out;
}

Json describe_data_entry(const ft::FlatTensor& root, const ft::NamedData& entry,
                         const std::string& path) {
  const auto index = entry.segment_index();
  if (entry.key() == nullptr || index >= root.segments()->size()) {
    throw InspectError{path + ": an entry has no key, or names segment " + std::to_string(index) +
                       " of " + std::to_string(root.segments()->size())};
  }
  const uint64_t bytes = root.segments()->Get(index)->size();
  Json out = {{"key", entry.key()->str()}, {"segment", index}, {"bytes", bytes}};
  const auto* layout = entry.tensor_layout();
  if (layout == nullptr) {
    return out;
  }
  const auto* sizes = layout->sizes();
  const auto* order = layout->dim_order();
  const auto dtype = static_cast<aten::ScalarType>(layout->scalar_type());
  if (sizes == nullptr || order == nullptr || sizes->size() != order->size()) {
    throw InspectError{path + ": " + entry.key()->str() + " has an incomplete tensor layout"};
  }
  const auto checked = runtime::TensorLayout::create({sizes->data(), sizes->size()},
                                                     {order->data(), order->size()}, dtype);
  if (!checked.ok() || checked->nbytes() > bytes) {
    throw InspectError{path + ": the tensor layout of " + entry.key()->str() +
                       " makes no sense or needs more than its " + std::to_string(bytes) +
                       " bytes"};
  }
  out["dtype"] = runtime::toString(dtype);
  out["sizes"] = std::vector<int32_t>(sizes->begin(), sizes->end());
  out["dim_order"] = std::vector<int>(order->begin(), order->end());
  return out;
}

Json describe_data(const FileLoader& loader, const std::string& path) {
  const size_t file_bytes = *loader.size();
  const FreeableBuffer head = read(loader, path, schema::kHeadBytes);
  schema::FlatTensorHeader header;
  const uint64_t limit = file_bytes;
  if (schema::parse_header(head.data(), head.size(), header) != schema::HeaderStatus::Found ||
      header.flatbuffer_offset > limit ||
      header.flatbuffer_size > limit - header.flatbuffer_offset ||
      header.segment_base_offset > limit ||
      header.segment_data_size > limit - header.segment_base_offset) {
    throw InspectError{path + ": the header is damaged or the file is truncated"};
  }
  const size_t size = static_cast<size_t>(header.flatbuffer_offset + header.flatbuffer_size);
  const FreeableBuffer bytes = read(loader, path, size);
  flatbuffers::Verifier verifier(static_cast<const uint8_t*>(bytes.data()), size);
  const auto* root =
      ft::VerifyFlatTensorBuffer(verifier) ? ft::GetFlatTensor(bytes.data()) : nullptr;
  if (root == nullptr || root->segments() == nullptr || root->named_data() == nullptr) {
    throw InspectError{path + ": not a well-formed data file"};
  }
  for (const auto* segment : *root->segments()) {
    if (segment->offset() > header.segment_data_size ||
        segment->size() > header.segment_data_size - segment->offset()) {
      throw InspectError{path + ": a segment reaches beyond the end of the file"};
    }
  }
  Json out = {{"kind", "data"},
              {"version", root->version()},
              {"file_bytes", file_bytes},
              {"segment_base", header.segment_base_offset},
              {"segment_bytes", header.segment_data_size},
              {"segments", describe_segments(root->segments())},
              {"named_data", Json::array()}};
  for (const auto* entry : *root->named_data()) {
    out["named_data"].push_back(describe_data_entry(*root, *entry, path));
  }
  return out;
}

}  // namespace

Json describe_file(const std::string& path) {
  const FileLoader loader(path);
  if (std::filesystem::is_directory(path) || !loader.is_open()) {
    throw InspectError{path + ": no such file, or it cannot be read"};
  }
  if (*loader.size() < schema::kHeadBytes) {
    throw InspectError{path + ": " + std::to_string(*loader.size()) +
                       " bytes are too few for a program or data file"};
  }
  const FreeableBuffer head = read(loader, path, schema::kHeadBytes);
  if (schema::check_identifier(head.data(), schema::kFlatTensorIdentifier) ==
      schema::Identifier::Match) {
    return describe_data(loader, path);
  }
  return describe_program(loader, path);
}

std::vector<std::string> missing_external_data(const Json& program, const Json& data) {
  std::vector<std::string> missing;
  for (const Json& method : program["methods"]) {
    for (const Json& value : method["values"]) {
      if (!value.contains("external")) {
        continue;
      }
      bool found = false;
      for (const Json& entry : data["named_data"]) {
        found = found || (entry["key"] == value["external"] && entry.contains("dtype") &&
                          entry["dtype"] == value["dtype"] && entry["sizes"] == value["sizes"] &&
                          entry["dim_order"] == value["dim_order"]);
      }
      if (!found) {
        missing.push_back(method["name"].get<std::string>() + ": " +
                          value["external"].get<std::string>() + " " +
                          value["dtype"].get<std::string>() + " " + value["sizes"].dump());
      }
    }
  }
  return missing;
}

}  // namespace executorch::devtools
