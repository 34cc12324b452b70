#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace executorch_flatbuffer {
struct ProgramT;
}  // namespace executorch_flatbuffer

/// Programs that are well-formed but mean what no exporter would write: several fields of one
/// instruction are changed together, by one large number, most often so that the program still
/// passes the checks of Program::load and its kernels meet the numbers.
namespace executorch::fuzz {

using Bytes = std::vector<uint8_t>;

/// SplitMix64: equal on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// Below `n`, which is not 0.
  uint64_t below(uint64_t n) { return next() % n; }
  bool chance(uint32_t percent) { return below(100) < percent; }

 private:
  uint64_t state_;
};

/// A program that is taken apart once.
class Seed {
 public:
  Seed(std::string name, Bytes bytes);
  Seed(Seed&&) noexcept;
  ~Seed();

  const std::string& name() const { return name_; }
  const Bytes& bytes() const { return bytes_; }
  /// False if the bytes are no program.
  bool ok() const { return flatbuffer_ != nullptr; }
  /// The program's bytes changed by what `random` says.
  Bytes mutate(Random random) const;

 private:
  std::string name_;
  Bytes bytes_;
  const uint8_t* flatbuffer_ = nullptr;  // in bytes_
  size_t segments_at_ = 0;
};

/// "name.overload" of what an instruction calls, "jump", "free", ... ; empty if there is none.
std::string operator_at(const Bytes& program, size_t method, size_t chain, size_t instruction);
/// The instructions and their arguments, a line each, for people who read findings.
std::string describe(const Bytes& program);

}  // namespace executorch::fuzz
