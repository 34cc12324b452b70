#include <executorch/devtools/inspect/describe.h>
#include <executorch/devtools/inspect/file_loader.h>
#include <executorch/devtools/inspect/output_file.h>
#include <executorch/devtools/inspect/strip.h>
#include <executorch/runtime/executor/debug_identity.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/schema/extended_header.h>
#include <executorch/schema/program_generated.h>

#include <algorithm>
#include <vector>

namespace executorch::devtools {
namespace {

namespace fb = executorch_flatbuffer;
using schema::ProgramHeader;

// Of segments; a page.
constexpr uint64_t kLargestAlignment = 4096;

/// Serves ranges of bytes in memory.
class BytesLoader final : public runtime::DataLoader {
 public:
  explicit BytesLoader(const std::string& bytes) : bytes_(bytes) {}
  runtime::Result<runtime::FreeableBuffer> load(size_t offset, size_t size,
                                                const SegmentInfo&) const override {
    if (offset > bytes_.size() || size > bytes_.size() - offset) {
      return runtime::Error::InvalidArgument;
    }
    return runtime::FreeableBuffer(bytes_.data() + offset, size, nullptr);
  }
  runtime::Result<size_t> size() const override { return bytes_.size(); }

 private:
  const std::string& bytes_;
};

bool is_program(const std::string& bytes) {
  BytesLoader loader(bytes);
  return runtime::Program::load(&loader).ok();
}

/// Edits a verified file in place, so that tables this code does not know are kept. All changes are
/// determined before the first one is made, because in a hostile file tables may overlap.
class Image {
 public:
  explicit Image(std::string bytes) : bytes_(std::move(bytes)) {
    (void)schema::parse_header(bytes_.data(), bytes_.size(), header_);
    // Headers of older files do not have segment_data_size.
    if (header_.segment_data_size == 0 && header_.segment_base_offset > 0) {
      header_.segment_data_size = bytes_.size() - header_.segment_base_offset;
    }
  }

  /// Removes an entry of the named data and, if nothing else uses it, its segment. False without
  /// such an entry.
  bool remove_named_data(const char* key) {
    const auto* entries = program().named_data();
    for (uint32_t i = 0; entries != nullptr && i < entries->size(); ++i) {
      if (entries->Get(i)->key()->str() == key) {
        const uint32_t segment = entries->Get(i)->segment_index();
        if (!is_used(segment, i)) remove_segment(segment);
        remove_entry(i);
        apply();
        return true;
      }
    }
    return false;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  const fb::Program& program() const { return *fb::GetProgram(bytes_.data()); }

  size_t place_of(const void* pointer) const {
    return static_cast<size_t>(static_cast<const char*>(pointer) - bytes_.data());
  }
  template <typename T>
  void write(size_t place, T value) {
    writes_.push_back({place, std::string(sizeof(T), '\0')});
    flatbuffers::WriteScalar<T>(writes_.back().bytes.data(), value);
  }

  // The entries are a flatbuffer vector of offsets, each relative to its own position, so an entry
  // that moves forward by 4 bytes has an offset larger by 4.
  void remove_entry(uint32_t index) {
    using Offset = flatbuffers::uoffset_t;
    const auto* entries = program().named_data();
    const size_t length = place_of(entries), items = length + sizeof(Offset);
    const uint32_t n = entries->size();
    for (uint32_t i = index; i + 1 < n; ++i) {
      const auto next = flatbuffers::ReadScalar<Offset>(bytes_.data() + items + 4 * (i + 1));
      write<Offset>(items + 4 * i, next + 4);
    }
    write<Offset>(items + 4 * (n - 1), 0);
    write<Offset>(length, n - 1);
  }

  bool is_used(uint32_t segment, uint32_t but_by) const {
    const auto& entries = *program().named_data();
    for (uint32_t i = 0; i < entries.size(); ++i) {
      if (i != but_by && entries.Get(i)->segment_index() == segment) return true;
    }
    return false;
  }

  void set(const fb::DataSegment& segment, flatbuffers::voffset_t field, uint64_t value) {
    // Generated classes derive privately from Table, hence the cast. An absent field already reads
    // as 0, its default, and stays absent.
    const auto& table = reinterpret_cast<const flatbuffers::Table&>(segment);
    if (const uint8_t* place = table.GetAddressOf(field)) write<uint64_t>(place_of(place), value);
  }

  // Empties a segment. It stays in the list, since other segments are referred to by index. Later
  // segments move forward as far as their alignment allows.
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
    hole_ = {static_cast<size_t>(header_.segment_base_offset + from),
             static_cast<size_t>(next - from), static_cast<size_t>(gap)};
    // The extended header begins behind the identifier and its magic: u32 length, u64 program size,
    // segment base, segment size.
    constexpr size_t kLength = 12, kSegmentSize = 32;
    const auto length = flatbuffers::ReadScalar<uint32_t>(bytes_.data() + kLength);
    if (length >= schema::kProgramHeaderLength) {
      write<uint64_t>(kSegmentSize, header_.segment_data_size - gap);
    }
  }

  void apply() {
    for (const Write& change : writes_) {
      bytes_.replace(change.place, change.bytes.size(), change.bytes);
    }
    std::fill_n(bytes_.begin() + static_cast<ptrdiff_t>(hole_.place), hole_.size, '\0');
    bytes_.erase(hole_.place, hole_.removed);
  }

  struct Write {
    size_t place;
    std::string bytes;
  };
  /// `size` bytes of the file that are set to zero, of which `removed` are then removed.
  struct Hole {
    size_t place, size, removed;
  };

  std::string bytes_;
  ProgramHeader header_;
  std::vector<Write> writes_;
  Hole hole_{};
};

}  // namespace

StripResult strip_program(const std::string& path, const std::string& output) {
  // This says why, if it is no program at all.
  if (describe_file(path)["kind"] != "program") {
    throw InspectError{path + ": only programs have something to strip"};
  }
  std::string bytes = read_whole_file(path);
  if (!is_program(bytes)) throw InspectError{path + ": was changed while it was read"};
  Image image(std::move(bytes));
  StripResult result{image.bytes().size(), 0};
  image.remove_named_data(runtime::kDebugIdentityKey);
  if (!is_program(image.bytes())) {
    throw InspectError{path + ": its tables lie on one another, so that none can be removed"};
  }
  result.after = image.bytes().size();
  write_file(output, image.bytes());
  return result;
}

}  // namespace executorch::devtools
