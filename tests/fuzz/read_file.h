#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace executorch::fuzz {

/// The bytes of a file; none where it cannot be read.
inline std::vector<uint8_t> read_file(const std::string& name) {
  std::ifstream in(name, std::ios::binary | std::ios::ate);
  std::vector<uint8_t> bytes(in ? static_cast<size_t>(in.tellg()) : 0);
  in.seekg(0);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

}  // namespace executorch::fuzz
