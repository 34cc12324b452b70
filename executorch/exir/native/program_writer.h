#pragma once

#include <executorch/exir/native/file_image.h>

#include <cstdint>
#include <vector>

namespace executorch::exir {

/// Bytes from the segment base on.
struct SegmentRange {
  uint64_t offset;
  uint64_t size;
};

/// Bytes that become one segment of a file, or that are a part of another one.
class Segment {
 public:
  /// The segment's start is aligned to `alignment` (and to the file's segment alignment).
  explicit Segment(uint64_t alignment) : alignment_(alignment) {}
  /// `size` bytes at `offset` of segment `whole`, which comes before this one: stored once.
  static Segment part_of(uint64_t whole, uint64_t offset, uint64_t size);
  /// Appends zeros up to `alignment`, then the bytes; returns their offset in the segment.
  uint64_t append(nanobind::handle buffer, uint64_t alignment);

  uint64_t alignment() const { return alignment_; }
  uint64_t size() const { return whole_ < 0 ? image_.size() : part_.size; }
  const FileImage& image() const { return image_; }
  /// The segment that this is a part of, or -1, and where in it.
  int64_t whole() const { return whole_; }
  const SegmentRange& part() const { return part_; }

 private:
  uint64_t alignment_;
  FileImage image_;
  int64_t whole_ = -1;
  SegmentRange part_{};
};

/// Where segments lie: one after the other, each aligned to the least common multiple of
/// `segment_alignment` and its own alignment, and parts where their wholes do. ValueError for parts
/// of what is not there.
std::vector<SegmentRange> lay_out(const std::vector<const Segment*>& segments,
                                  uint64_t segment_alignment);

/// Appends the segments at the offsets of `ranges`, counted from the image's present end.
void append_segments(FileImage& image, const std::vector<const Segment*>& segments,
                     const std::vector<SegmentRange>& ranges);

/// The .pte file of a schema Program. Its `segments` table is made from `segments`, all other
/// fields are taken as they are. Without any segment byte the file is a bare flatbuffer.
///   constant_alignment, delegate_alignment  of inline constants and delegate data; powers of two
/// Throws what reading the dataclasses throws, OverflowError for integers that do not fit, and
/// ValueError if the part without segments passes 2 GiB.
FileImage write_program(nanobind::handle program, const std::vector<const Segment*>& segments,
                        uint64_t segment_alignment, uint64_t constant_alignment,
                        uint64_t delegate_alignment);

/// The .ptd file of named blobs. `entries` holds (key, segment index, layout) where layout is None
/// or (scalar type, sizes, dim order).
FileImage write_flat_tensor(nanobind::handle entries, const std::vector<const Segment*>& segments,
                            uint64_t segment_alignment);

}  // namespace executorch::exir
