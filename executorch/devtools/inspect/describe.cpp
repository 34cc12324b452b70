#include <executorch/devtools/inspect/budget.h>
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

#include <algorithm>
#include <map>

namespace executorch::devtools {
namespace {

using runtime::DataLoader;
using runtime::FreeableBuffer;
namespace fb = executorch_flatbuffer;
namespace ft = flat_tensor_flatbuffer;

FreeableBuffer read(const FileLoader& loader, const std::string& path, size_t size) {
  auto bytes =
      loader.load(0, size, DataLoader::SegmentInfo(DataLoader::SegmentInfo::Type::Program));
  if (!bytes.ok()) throw InspectError{path + ": " + std::to_string(size) + " bytes cannot be read"};
  return std::move(*bytes);
}

// The largest description of a flatbuffer: some characters for each byte, and additional room for
// the paths of Python files, which are repeated for each instruction.
Budget budget_for(const std::string& path, uint64_t flatbuffer_bytes) {
  constexpr uint64_t kPerByte = 32, kLeast = 1 << 20;
  return {path, kLeast + kPerByte * std::min<uint64_t>(flatbuffer_bytes, UINT32_MAX)};
}

/// Serves the beginning of a file from memory, so that what is described is exactly what was
/// verified.
class ReadLoader final : public DataLoader {
 public:
  ReadLoader(const FreeableBuffer& head, const FileLoader& rest) : head_(head), rest_(rest) {}

  runtime::Result<FreeableBuffer> load(size_t offset, size_t size,
                                       const SegmentInfo& info) const override {
    if (offset > head_.size() || size > head_.size() - offset) {
      return rest_.load(offset, size, info);
    }
    return FreeableBuffer(static_cast<const char*>(head_.data()) + offset, size, nullptr);
  }
  runtime::Result<size_t> size() const override { return rest_.size(); }

 private:
  const FreeableBuffer& head_;
  const FileLoader& rest_;
};

template <typename Segments>
Json describe_segments(const Segments* segments, Budget& budget) {
  Json list = Json::array();
  budget.take(segments == nullptr ? 0 : segments->size());
  for (uint32_t i = 0; segments != nullptr && i < segments->size(); ++i) {
    list.push_back({{"offset", segments->Get(i)->offset()}, {"bytes", segments->Get(i)->size()}});
  }
  return list;
}

Json describe_blobs(const fb::SubsegmentOffsets* table, Budget& budget) {
  Json offsets = Json::array();
  budget.take(table == nullptr || table->offsets() == nullptr ? 0 : table->offsets()->size());
  for (uint32_t i = 0;
       table != nullptr && table->offsets() != nullptr && i < table->offsets()->size(); ++i) {
    offsets.push_back(table->offsets()->Get(i));
  }
  return {{"segment", table == nullptr ? 0 : table->segment_index()}, {"offsets", offsets}};
}

Json describe_constants(const fb::Program& program, Budget& budget) {
  const auto* buffers = program.constant_buffer();
  if (buffers == nullptr || buffers->size() == 0) {
    return describe_blobs(program.constant_segment(), budget);
  }
  Json sizes = Json::array();
  budget.take(buffers->size());
  for (const auto* buffer : *buffers) {
    sizes.push_back(buffer->storage() == nullptr ? 0 : buffer->storage()->size());
  }
  return {{"inline_bytes", sizes}};
}

Json describe_program(const FileLoader& loader, const std::string& path) {
  const size_t file_bytes = loader.file_bytes();
  const FreeableBuffer head = read(loader, path, schema::kHeadBytes);
  schema::ProgramHeader header{file_bytes, 0, 0};
  (void)schema::parse_header(head.data(), head.size(), header);
  const auto program_bytes =
      static_cast<size_t>(std::min<uint64_t>(header.program_size, file_bytes));
  const FreeableBuffer bytes = read(loader, path, program_bytes);
  ReadLoader read_once(bytes, loader);
  const auto verified = runtime::Program::load(&read_once);
  if (!verified.ok()) {
    throw InspectError{path + ": not a valid program (" + to_string(verified.error()) + ")" +
                       other_kind(path)};
  }
  const fb::Program& program = *fb::GetProgram(bytes.data());
  Budget budget = budget_for(path, program_bytes);

  Json out = {{"kind", "program"},
              {"version", program.version()},
              {"file_bytes", file_bytes},
              {"program_bytes", header.program_size},
              {"segment_base", header.segment_base_offset},
              {"segment_bytes", header.segment_data_size},
              {"segments", describe_segments(program.segments(), budget)},
              {"constants", describe_constants(program, budget)}};
  const auto* states = program.mutable_data_segments();
  out["initial_states"] =
      describe_blobs(states == nullptr || states->size() == 0 ? nullptr : states->Get(0), budget);
  out["named_data"] = Json::array();
  for (uint32_t i = 0; program.named_data() != nullptr && i < program.named_data()->size(); ++i) {
    const auto* entry = program.named_data()->Get(i);
    out["named_data"].push_back(
        {{"key", budget.name(entry->key()->string_view())},
         {"segment", entry->segment_index()},
         {"bytes", program.segments()->Get(entry->segment_index())->size()}});
  }
  const auto identity = verified->debug_identity();
  out["methods"] = Json::array();
  for (const auto* plan : *program.execution_plan()) {
    out["methods"].push_back(
        describe_plan(program, *plan, identity.ok() ? &*identity : nullptr, budget));
  }
  return out;
}

Json describe_data_entry(const ft::FlatTensor& root, const ft::NamedData& entry,
                         const std::string& path, Budget& budget) {
  const auto index = entry.segment_index();
  if (entry.key() == nullptr || index >= root.segments()->size()) {
    throw InspectError{path + ": an entry has no key, or names segment " + std::to_string(index) +
                       " of " + std::to_string(root.segments()->size())};
  }
  const uint64_t bytes = root.segments()->Get(index)->size();
  const std::string key = budget.name(entry.key()->string_view());
  Json out = {{"key", key}, {"segment", index}, {"bytes", bytes}};
  const auto* layout = entry.tensor_layout();
  if (layout == nullptr) return out;
  const auto* sizes = layout->sizes();
  const auto* order = layout->dim_order();
  const auto dtype = static_cast<aten::ScalarType>(layout->scalar_type());
  if (sizes == nullptr || order == nullptr || sizes->size() != order->size()) {
    throw InspectError{path + ": " + key + " has an incomplete tensor layout"};
  }
  const auto checked = runtime::TensorLayout::create({sizes->data(), sizes->size()},
                                                     {order->data(), order->size()}, dtype);
  if (!checked.ok() || checked->nbytes() > bytes) {
    throw InspectError{path + ": the tensor layout of " + key +
                       " makes no sense or needs more than its " + std::to_string(bytes) +
                       " bytes"};
  }
  out["dtype"] = runtime::toString(dtype);
  out["sizes"] = std::vector<int32_t>(sizes->begin(), sizes->end());
  out["dim_order"] = std::vector<int>(order->begin(), order->end());
  return out;
}

Json describe_data(const FileLoader& loader, const std::string& path) {
  const size_t file_bytes = loader.file_bytes();
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
  Budget budget = budget_for(path, size);
  const auto max_tables = static_cast<flatbuffers::uoffset_t>(size / 4 + 1);
  flatbuffers::Verifier verifier(static_cast<const uint8_t*>(bytes.data()), size, 64, max_tables);
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
              {"segments", describe_segments(root->segments(), budget)},
              {"named_data", Json::array()}};
  for (const auto* entry : *root->named_data()) {
    out["named_data"].push_back(describe_data_entry(*root, *entry, path, budget));
  }
  return out;
}

}  // namespace

Json describe_file(const std::string& path) {
  const FileLoader loader(path);
  if (loader.file_bytes() < schema::kHeadBytes) {
    throw InspectError{path + ": " + std::to_string(loader.file_bytes()) +
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
  std::map<std::string, const Json*> entries;
  for (const Json& entry : data["named_data"]) entries[entry["key"]] = &entry;
  for (const Json& method : program["methods"]) {
    for (const Json& value : method["values"]) {
      if (!value.contains("external")) continue;
      const auto found = entries.find(value["external"]);
      const Json* const entry = found == entries.end() ? nullptr : found->second;
      const bool fits =
          entry != nullptr && entry->contains("dtype") && (*entry)["dtype"] == value["dtype"] &&
          (*entry)["sizes"] == value["sizes"] && (*entry)["dim_order"] == value["dim_order"];
      if (!fits) {
        missing.push_back(method["name"].get<std::string>() + ": " +
                          value["external"].get<std::string>() + " " +
                          value["dtype"].get<std::string>() + " " + value["sizes"].dump());
      }
    }
  }
  return missing;
}

}  // namespace executorch::devtools
