/// What tests of ETDumpGen share.
#pragma once

#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/devtools/etdump/etdump_generated.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

namespace executorch::etdump {

/// The file that `gen` gives, verified with alignment; null where it gives none.
class Dump {
 public:
  explicit Dump(ETDumpGen& gen) {
    const ETDumpResult result = gen.get_etdump_data();
    if (result.buf == nullptr) return;
    const auto* data = static_cast<const uint8_t*>(result.buf);
    bytes_.assign(data, data + result.size);  // aligned as a file would be
    if (!gen.is_static_etdump()) std::free(result.buf);
    flatbuffers::Verifier verifier(bytes_.data(), bytes_.size());
    if (etdump_flatbuffer::VerifySizePrefixedETDumpBuffer(verifier)) {
      root_ = etdump_flatbuffer::GetSizePrefixedETDump(bytes_.data());
    }
  }
  const etdump_flatbuffer::ETDump* operator->() const { return root_; }
  bool valid() const { return root_ != nullptr; }
  const etdump_flatbuffer::RunData& run(flatbuffers::uoffset_t i) const {
    return *root_->run_data()->Get(i);
  }
  const etdump_flatbuffer::ProfileEvent& profile(flatbuffers::uoffset_t i) const {
    return *run(0).events()->Get(i)->profile_event();
  }
  const etdump_flatbuffer::DebugEvent& debug(flatbuffers::uoffset_t i) const {
    return *run(0).events()->Get(i)->debug_event();
  }

 private:
  std::vector<uint8_t> bytes_;
  const etdump_flatbuffer::ETDump* root_ = nullptr;
};

/// Every test runs with memory of its own and with memory of the caller's.
class ETDumpGenTest : public ::testing::TestWithParam<bool> {
 protected:
  ETDumpGenTest()
      : memory_(20001),
        // Not where a flatbuffer could begin.
        gen_(GetParam() ? runtime::Span<uint8_t>(memory_.data() + 1, 20000)
                        : runtime::Span<uint8_t>(nullptr, size_t{0})) {}
  std::vector<uint8_t> memory_;
  ETDumpGen gen_;
};

}  // namespace executorch::etdump
