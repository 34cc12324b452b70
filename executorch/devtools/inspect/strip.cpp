#include <executorch/devtools/inspect/describe.h>
#include <executorch/devtools/inspect/output_file.h>
#include <executorch/devtools/inspect/strip.h>
#include <executorch/runtime/executor/debug_identity.h>
#include <executorch/schema/extended_header.h>
#include <executorch/schema/program_generated.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

namespace executorch::devtools {
namespace {

namespace fb = executorch_flatbuffer;
using schema::ProgramHeader;

// Of segments; a page.
constexpr uint64_t kLargestAlignment = 4096;

std::string read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  if (!(bytes << file.rdbuf())) throw InspectError{path + ": cannot be read"};
  return bytes.str();
}

/// A verified file whose tables are changed where they lie, so that what this does not know stays.
class Image {
 public:
  explicit Image(std::string bytes) : bytes_(std::move(bytes)) {
    (void)schema::parse_header(bytes_.data(), bytes_.size(), header_);
    // Old headers do not say.
    if (header_.segment_data_size == 0 && header_.segment_base_offset > 0) {
      header_.segment_data_size = bytes_.size() - header_.segment_base_offset;
    }
  }

  /// False if there is no such entry.
  bool remove_named_data(const char* key) {
    const auto* entries = program().named_data();
    for (uint32_t i = 0; entries != nullptr && i < entries->size(); ++i) {
      if (entries->Get(i)->key()->str() == key) {
        const uint32_t segment = entries->Get(i)->segment_index();
        remove_entry(i);
        if (!is_used(segment)) remove_segment(segment);
        return true;
      }
    }
    return false;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  const fb::Program& program() const { return *fb::GetProgram(bytes_.data()); }

  char* writable(const void* place) {
    return bytes_.data() + (static_cast<const char*>(place) - bytes_.data());
  }

  // A vector of offsets, each relative to its own place.
  void remove_entry(uint32_t index) {
    const auto* entries = program().named_data();
    char* const length = writable(entries);
    char* const items = length + sizeof(flatbuffers::uoffset_t);
    const uint32_t n = entries->size();
    for (uint32_t i = index; i + 1 < n; ++i) {
      const auto next = flatbuffers::ReadScalar<flatbuffers::uoffset_t>(items + 4 * (i + 1));
      flatbuffers::WriteScalar<flatbuffers::uoffset_t>(items + 4 * i, next + 4);
    }
    flatbuffers::WriteScalar<flatbuffers::uoffset_t>(items + 4 * (n - 1), 0);
    flatbuffers::WriteScalar<flatbuffers::uoffset_t>(length, n - 1);
  }

  bool is_used(uint32_t segment) const {
    for (const auto* entry : *program().named_data()) {
      if (entry->segment_index() == segment) return true;
    }
    return false;
  }

  void set(const fb::DataSegment& segment, flatbuffers::voffset_t field, uint64_t value) {
    // Generated tables hide that they are one. An absent field reads as the default, 0, which is
    // what it is then set to.
    const auto& table = reinterpret_cast<const flatbuffers::Table&>(segment);
    if (const uint8_t* place = table.GetAddressOf(field)) {
      flatbuffers::WriteScalar<uint64_t>(writable(place), value);
    }
  }

  // Its number stays, for those behind it keep theirs; its bytes go. What follows moves as far as
  // its alignment allows.
  void remove_segment(uint32_t index) {
    const auto& segments = *program().segments();
    const uint64_t begin = segments.Get(index)->offset();
    const uint64_t end = begin + segments.Get(index)->size();
    uint64_t next = header_.segment_data_size;
    uint64_t last_end = 0;
    uint64_t alignment = 1;
    for (uint32_t i = 0; i < segments.size(); ++i) {
      const uint64_t offset = segments.Get(i)->offset(), size = segments.Get(i)->size();
      if (i == index || size == 0) continue;
      last_end = std::max(last_end, offset + size);
      if (offset < end) continue;
      next = std::min(next, offset);
      alignment = std::max(alignment, std::min(offset & (~offset + 1), kLargestAlignment));
    }
    // If nothing follows, the padding before it goes too.
    const uint64_t from = next == header_.segment_data_size ? std::min(last_end, begin) : begin;
    const uint64_t gap = (next - from) / alignment * alignment;
    for (const auto* segment : segments) {
      if (segment->offset() >= next) {
        set(*segment, fb::DataSegment::VT_OFFSET, segment->offset() - gap);
      }
    }
    set(*segments.Get(index), fb::DataSegment::VT_OFFSET, 0);
    set(*segments.Get(index), fb::DataSegment::VT_SIZE, 0);
    const size_t hole = static_cast<size_t>(header_.segment_base_offset + from);
    std::fill_n(bytes_.begin() + static_cast<ptrdiff_t>(hole), next - from, '\0');
    bytes_.erase(hole, gap);
    header_.segment_data_size -= gap;
    write_header();
  }

  // Behind the identifier and the magic: u32 length, u64 program size, segment base, segment size.
  void write_header() {
    constexpr size_t kLength = 12, kSegmentSize = 32;
    const auto length = flatbuffers::ReadScalar<uint32_t>(bytes_.data() + kLength);
    if (length >= schema::kProgramHeaderLength) {
      flatbuffers::WriteScalar<uint64_t>(bytes_.data() + kSegmentSize, header_.segment_data_size);
    }
  }

  std::string bytes_;
  ProgramHeader header_;
};

}  // namespace

StripResult strip_program(const std::string& path, const std::string& output) {
  if (describe_file(path)["kind"] != "program") {
    throw InspectError{path + ": only programs have something to strip"};
  }
  Image image(read_whole(path));
  StripResult result{image.bytes().size(), 0};
  image.remove_named_data(runtime::kDebugIdentityKey);
  result.after = image.bytes().size();
  write_file(output, image.bytes());
  return result;
}

}  // namespace executorch::devtools
