#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/core/span.h>

namespace executorch::etdump::internal {

/// The flatbuffer of an ETDump while it is being recorded, written from its end to its beginning:
///
///   [ list of refs ->        free        <- finished objects ]
///
/// What refers to an object comes later, at a lower address, so nothing is touched twice and a
/// recorded event is little more than a copied struct. flatbuffers' own builder would do the same
/// but cannot report that memory ran out. Here reserve() is the one step that fails; after it, what
/// was asked for can be written, and whatever is written can be finished.
/// Not thread-safe.
class DumpBuilder {
 public:
  /// A reference to an object: the distance in bytes from its start to the buffer's end; 0 for
  /// none.
  using Ref = uint32_t;

  /// A kind of table together with the fields that are present; tables of one shape share a vtable.
  enum class Shape : uint8_t {
    kProfile,
    kProfileDelegateInt,
    kProfileDelegateStr,
    kAllocation,
    kDebug,
    kDebugDelegateInt,
    kDebugDelegateStr,
    kEventOfProfile,
    kEventOfAllocation,
    kEventOfDebug,
    kValueTensor,
    kValueTensorList,
    kValueInt,
    kValueDouble,
    kValueBool,
    kOutputTensor,
    kOutputTensorList,
    kOutputInt,
    kOutputDouble,
    kOutputBool,
    kTensor,
    kTensorList,
    kInt,
    kDouble,
    kBool,
    kAllocator,
    kRun,
    kRunWithAllocators,
    kDump,
    kCount,
  };

  /// A field of a table: where the vtable has it, and a number of 1, 4 or 8 bytes or an object.
  struct Field {
    uint16_t vtable_offset;
    uint8_t n_bytes;
    bool is_ref;
    uint64_t bits;

    static Field number(uint16_t vtable_offset, uint64_t value, uint8_t n_bytes) {
      return {vtable_offset, n_bytes, false, value};
    }
    static Field int32(uint16_t vtable_offset, int32_t value) {
      return number(vtable_offset, static_cast<uint32_t>(value), 4);
    }
    static Field int64(uint16_t vtable_offset, int64_t value) {
      return number(vtable_offset, static_cast<uint64_t>(value), 8);
    }
    static Field object(uint16_t vtable_offset, Ref ref) { return {vtable_offset, 4, true, ref}; }
  };

  /// Most bytes that a table, or a text or vector besides its elements, takes.
  static constexpr size_t kMostTableBytes = 96;
  static constexpr size_t kMostHeadBytes = 16;

  /// Uses only `memory`, or, if that is null, memory from malloc that grows.
  explicit DumpBuilder(runtime::Span<uint8_t> memory);
  ~DumpBuilder();
  DumpBuilder(const DumpBuilder&) = delete;
  DumpBuilder& operator=(const DumpBuilder&) = delete;

  bool is_static() const { return is_static_; }
  /// reset() forgets everything and keeps the memory; release() also frees the memory from malloc.
  void reset();
  void release();

  /// Whether there is room for `n_bytes` of objects and one more entry of the list of refs, besides
  /// what finish() needs.
  bool reserve(size_t n_bytes);

  /// The following write objects; the sum of their bytes has to be reserved before. text() does not
  /// write a text again that was written recently.
  Ref text(const char* text, size_t length);
  Ref octets(const void* data, size_t n_bytes);
  Ref int64s(const int64_t* items, size_t count);
  Ref vector(const Ref* items, size_t count);
  Ref table(Shape shape, std::initializer_list<Field> fields);

  /// The list of refs, for vectors whose length is not yet known: push() appends one, pop_vector()
  /// turns the last `count` into a vector, drop() forgets them. finish() and pop_vector() need no
  /// reserve().
  void push(Ref ref);
  size_t list_size() const { return list_size_; }
  void drop(size_t count) { list_size_ -= count; }
  Ref pop_vector(size_t count);

  /// Puts the size prefix, `root` and identifier in front: the whole file, within the buffer. Its
  /// start is aligned to 8. Nothing may be added before reset().
  runtime::Span<uint8_t> finish(Ref root, const char* identifier);
  /// Passes the memory from malloc to the caller, who frees it; the file is moved to its start.
  /// Resets the builder.
  void* detach(runtime::Span<uint8_t> file);

 private:
  uint8_t* at(Ref ref) const { return memory_ + capacity_ - ref; }
  static constexpr size_t kMostFields = 8;
  /// The vtable of a shape, and where its tables have their fields; set when the first such table
  /// is written.
  struct Layout {
    Ref vtable;
    uint8_t n_bytes;
    uint8_t alignment;
    uint8_t places[kMostFields];
  };

  uint8_t* take(size_t n_bytes, size_t alignment, size_t head_bytes);
  void lay_out(Layout& layout, std::initializer_list<Field> fields);
  bool grow(size_t wanted);

  static constexpr size_t kTexts = 128;
  /// A flatbuffer's offsets are 31 bits.
  static constexpr size_t kMostBytes = size_t{1} << 31;
  static constexpr size_t kFirstBytes = size_t{1} << 14;

  uint8_t* memory_ = nullptr;
  /// A multiple of 8, as is the address of memory_.
  size_t capacity_ = 0;
  size_t used_ = 0;
  size_t list_size_ = 0;
  bool is_static_ = false;
  Layout layouts_[static_cast<size_t>(Shape::kCount)] = {};
  /// The last text with each hash.
  Ref texts_[kTexts] = {};
};

/// One of the three shapes from `shape` on, by the delegate debug id of the event: none, a number
/// or a name.
inline DumpBuilder::Shape with_delegate(DumpBuilder::Shape shape,
                                        runtime::DelegateDebugIdType type) {
  return static_cast<DumpBuilder::Shape>(static_cast<int>(shape) + static_cast<int>(type));
}

}  // namespace executorch::etdump::internal
