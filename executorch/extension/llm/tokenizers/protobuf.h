#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace tokenizers {

/// Reads the fields of one protobuf message, one after the other.
class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view bytes) : rest_(bytes) {}

  /// The next field; false at the end, or where the message is damaged.
  bool next() {
    uint64_t tag = 0;
    if (rest_.empty() || !varint(tag)) return false;
    field = static_cast<uint32_t>(tag >> 3);
    wire = static_cast<uint32_t>(tag & 7);
    switch (wire) {
      case 0:
        return varint(value);
      case 1:
        return take(8);
      case 2: {
        uint64_t size = 0;
        return varint(size) && take(size);
      }
      case 5:
        return take(4);
      default:
        return fail();
    }
  }
  bool damaged() const { return damaged_; }
  /// A field of four bytes as a float.
  float as_float() const {
    float number = 0;
    if (bytes.size() == 4) std::memcpy(&number, bytes.data(), 4);
    return number;
  }

  uint32_t field = 0;
  uint32_t wire = 0;
  uint64_t value = 0;
  std::string_view bytes;

 private:
  bool fail() {
    damaged_ = true;
    return false;
  }
  bool take(uint64_t size) {
    if (size > rest_.size()) return fail();
    bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }
  bool varint(uint64_t& number) {
    number = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      number |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return fail();
  }

  std::string_view rest_;
  bool damaged_ = false;
};

}  // namespace tokenizers
