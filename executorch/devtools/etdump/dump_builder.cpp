#include <executorch/devtools/etdump/dump_builder.h>
#include <flatbuffers/flatbuffers.h>

#include <cstdlib>
#include <cstring>

namespace executorch::etdump::internal {
namespace {

using flatbuffers::WriteScalar;

constexpr size_t kAlignment = 8;
// The bytes of size prefix, root offset and identifier.
constexpr size_t kFileHeadBytes = 12;
// The bytes needed to close the last block and the dump, without the vectors of refs.
constexpr size_t kClosingBytes = 3 * DumpBuilder::kMostTableBytes;
constexpr uint16_t kFirstField = 4;

size_t round_up(size_t bytes, size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

uint32_t hash(const char* text, size_t length) {
  uint64_t state = length;
  for (; length >= 8; text += 8, length -= 8) {
    uint64_t word;
    std::memcpy(&word, text, 8);
    state = (state ^ word) * 0x9E3779B97F4A7C15u;
    state ^= state >> 29;
  }
  uint64_t word = 0;
  std::memcpy(&word, text, length);
  return static_cast<uint32_t>(((state ^ word) * 0x9E3779B97F4A7C15u) >> 32);
}

}  // namespace

DumpBuilder::DumpBuilder(runtime::Span<uint8_t> memory) : is_static_(memory.data() != nullptr) {
  if (is_static_) {
    const auto address = reinterpret_cast<uintptr_t>(memory.data());
    const size_t skipped = round_up(address, kAlignment) - address;
    memory_ = memory.data() + (skipped < memory.size() ? skipped : 0);
    capacity_ = skipped < memory.size() ? (memory.size() - skipped) / kAlignment * kAlignment : 0;
    capacity_ = capacity_ < kMostBytes ? capacity_ : kMostBytes;
  }
}

DumpBuilder::~DumpBuilder() {
  release();
}

void DumpBuilder::reset() {
  used_ = 0;
  list_size_ = 0;
  std::memset(layouts_, 0, sizeof(layouts_));
  std::memset(texts_, 0, sizeof(texts_));
}

void DumpBuilder::release() {
  reset();
  if (!is_static_) {
    std::free(memory_);
    memory_ = nullptr;
    capacity_ = 0;
  }
}

bool DumpBuilder::reserve(size_t n_bytes) {
  // Each ref is in the list, and once more in a vector.
  const size_t wanted = used_ + n_bytes + 2 * (list_size_ + 1) * sizeof(Ref) + kClosingBytes;
  return n_bytes < kMostBytes && (wanted <= capacity_ || grow(wanted));
}

bool DumpBuilder::grow(size_t wanted) {
  if (is_static_ || wanted > kMostBytes) return false;
  size_t capacity = capacity_ == 0 ? kFirstBytes : capacity_;
  while (capacity < wanted) capacity *= 2;
  auto* const memory = static_cast<uint8_t*>(std::malloc(capacity));
  if (memory == nullptr) return false;
  if (memory_ != nullptr) {
    std::memcpy(memory, memory_, list_size_ * sizeof(Ref));
    std::memcpy(memory + capacity - used_, at(static_cast<Ref>(used_)), used_);
    std::free(memory_);
  }
  memory_ = memory;
  capacity_ = capacity;
  return true;
}

// The next `n_bytes`, so that what follows the first `head_bytes` of them is aligned.
uint8_t* DumpBuilder::take(size_t n_bytes, size_t alignment, size_t head_bytes) {
  const size_t used = round_up(used_ + n_bytes - head_bytes, alignment) + head_bytes;
  uint8_t* const start = memory_ + capacity_ - used;
  for (uint8_t* padding = start + n_bytes; padding < start + (used - used_); ++padding) {
    *padding = 0;
  }
  used_ = used;
  return start;
}

DumpBuilder::Ref DumpBuilder::text(const char* text, size_t length) {
  Ref& known = texts_[hash(text, length) % kTexts];
  if (known != 0 && flatbuffers::ReadScalar<uint32_t>(at(known)) == length &&
      std::memcmp(at(known) + 4, text, length) == 0) {
    return known;
  }
  uint8_t* const start = take(4 + length + 1, 4, 0);
  WriteScalar(start, static_cast<uint32_t>(length));
  std::memcpy(start + 4, text, length);
  start[4 + length] = 0;
  known = static_cast<Ref>(used_);
  return known;
}

DumpBuilder::Ref DumpBuilder::octets(const void* data, size_t n_bytes) {
  uint8_t* const start = take(4 + n_bytes, 4, 0);
  WriteScalar(start, static_cast<uint32_t>(n_bytes));
  if (n_bytes > 0) std::memcpy(start + 4, data, n_bytes);
  return static_cast<Ref>(used_);
}

DumpBuilder::Ref DumpBuilder::int64s(const int64_t* items, size_t count) {
  uint8_t* const start = take(4 + 8 * count, 8, 4);
  WriteScalar(start, static_cast<uint32_t>(count));
  for (size_t i = 0; i < count; ++i) WriteScalar(start + 4 + 8 * i, items[i]);
  return static_cast<Ref>(used_);
}

DumpBuilder::Ref DumpBuilder::vector(const Ref* items, size_t count) {
  uint8_t* const start = take(4 + 4 * count, 4, 0);
  WriteScalar(start, static_cast<uint32_t>(count));
  for (size_t i = 0; i < count; ++i) {
    Ref item;
    std::memcpy(&item, items + i, sizeof(item));
    WriteScalar(start + 4 + 4 * i, static_cast<uint32_t>(used_ - 4 - 4 * i) - item);
  }
  return static_cast<Ref>(used_);
}

DumpBuilder::Ref DumpBuilder::table(Shape shape, std::initializer_list<Field> fields) {
  Layout& layout = layouts_[static_cast<size_t>(shape)];
  if (layout.vtable == 0) lay_out(layout, fields);
  uint8_t* const start = take(layout.n_bytes, layout.alignment, 0);
  WriteScalar(start, static_cast<int32_t>(layout.vtable) - static_cast<int32_t>(used_));
  if (layout.alignment == 8) {
    WriteScalar(start + 4, uint32_t{0});  // the gap
  }
  for (const Field& field : fields) {
    const size_t place = layout.places[(field.vtable_offset - kFirstField) / 2];
    if (field.is_ref) {
      WriteScalar(start + place, static_cast<uint32_t>(used_ - place - field.bits));
    } else if (field.n_bytes == 8) {
      WriteScalar(start + place, field.bits);
    } else if (field.n_bytes == 4) {
      WriteScalar(start + place, static_cast<uint32_t>(field.bits));
    } else {
      WriteScalar(start + place, static_cast<uint8_t>(field.bits));
    }
  }
  return static_cast<Ref>(used_);
}

// Numbers of eight bytes come first, behind the place of the vtable and a gap.
void DumpBuilder::lay_out(Layout& layout, std::initializer_list<Field> fields) {
  uint16_t end = kFirstField;
  layout.alignment = 4;
  for (const Field& field : fields) {
    layout.alignment = field.n_bytes == 8 ? 8 : layout.alignment;
    const auto field_end = static_cast<uint16_t>(field.vtable_offset + 2);
    end = field_end > end ? field_end : end;
  }
  layout.n_bytes = layout.alignment;
  for (const uint8_t n_bytes : {8, 4, 1}) {
    for (const Field& field : fields) {
      if (field.n_bytes == n_bytes) {
        layout.places[(field.vtable_offset - kFirstField) / 2] = layout.n_bytes;
        layout.n_bytes = static_cast<uint8_t>(layout.n_bytes + n_bytes);
      }
    }
  }
  uint8_t* const start = take(end, 4, 0);
  WriteScalar(start, end);
  WriteScalar(start + 2, static_cast<uint16_t>(layout.n_bytes));
  for (uint16_t offset = kFirstField; offset < end; offset = static_cast<uint16_t>(offset + 2)) {
    WriteScalar(start + offset, uint16_t{layout.places[(offset - kFirstField) / 2]});
  }
  layout.vtable = static_cast<Ref>(used_);
}

void DumpBuilder::push(Ref ref) {
  std::memcpy(memory_ + list_size_ * sizeof(Ref), &ref, sizeof(ref));
  ++list_size_;
}

DumpBuilder::Ref DumpBuilder::pop_vector(size_t count) {
  list_size_ -= count;
  return vector(reinterpret_cast<const Ref*>(memory_) + list_size_, count);
}

runtime::Span<uint8_t> DumpBuilder::finish(Ref root, const char* identifier) {
  // The whole file begins at a multiple of 8, and ends at one.
  used_ = round_up(used_, 4);
  uint8_t* const start = take(kFileHeadBytes, kAlignment, 0);
  WriteScalar(start, static_cast<uint32_t>(used_ - 4));
  WriteScalar(start + 4, static_cast<uint32_t>(used_ - 4) - root);
  std::memcpy(start + 8, identifier, 4);
  return {start, used_};
}

void* DumpBuilder::detach(runtime::Span<uint8_t> file) {
  uint8_t* const memory = memory_;
  std::memmove(memory, file.data(), file.size());
  memory_ = nullptr;
  capacity_ = 0;
  reset();
  return memory;
}

}  // namespace executorch::etdump::internal
