#include <executorch/runtime/core/derived_data.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace executorch {
namespace runtime {
namespace {

/// Remembers what it was to give back.
class Loader final : public DataLoader {
 public:
  explicit Loader(bool releases) : releases_(releases) {}
  Result<FreeableBuffer> load(size_t, size_t, const SegmentInfo&) const override {
    return Error::NotSupported;
  }
  Result<size_t> size() const override { return size_t{0}; }
  bool release(const void* data, size_t size) const override {
    if (releases_) given_back.emplace_back(data, size);
    return releases_;
  }

  mutable std::vector<std::pair<const void*, size_t>> given_back;

 private:
  const bool releases_;
};

struct Counted : DerivedData::Entry {
  explicit Counted(const void* of, int* counter) : freed(counter) {
    source = of;
    free = [](DerivedData::Entry* entry) {
      auto* const own = static_cast<Counted*>(entry);
      ++*own->freed;
      delete own;
    };
  }
  int* freed;
};

TEST(DerivedDataTest, GivesBackConstantsOnly) {
  const Loader loader(true);
  DerivedData derived(&loader);
  const std::vector<uint8_t> bytes(100);
  const auto* const data = bytes.data();
  EXPECT_FALSE(derived.release(data, 0)) << "before they are loaded";
  derived.set_constants(data, bytes.size());
  EXPECT_TRUE(derived.release(data + 10, 90));
  EXPECT_TRUE(derived.release(data, 100));
  EXPECT_TRUE(derived.release(data + 100, 0));
  EXPECT_FALSE(derived.release(data + 10, 91));
  EXPECT_FALSE(derived.release(data - 1, 1));
  EXPECT_FALSE(derived.release(data + 101, 0));
  EXPECT_FALSE(derived.release(data + 1, SIZE_MAX));
  EXPECT_FALSE(derived.release(nullptr, 0));
  ASSERT_EQ(loader.given_back.size(), 3u);
  EXPECT_EQ(loader.given_back[0], std::make_pair(static_cast<const void*>(data + 10), size_t{90}));
}

TEST(DerivedDataTest, GivesNothingBackThatTheLoaderCannotReadAgain) {
  const Loader loader(false);
  DerivedData derived(&loader);
  const std::vector<uint8_t> bytes(100);
  derived.set_constants(bytes.data(), bytes.size());
  EXPECT_FALSE(derived.release(bytes.data(), 0));
}

TEST(DerivedDataTest, KeepsOneEntryOfEachConstantAndFreesAll) {
  const Loader loader(true);
  const int sources[3] = {};
  int freed = 0;
  {
    DerivedData first(&loader);
    EXPECT_EQ(first.find(&sources[0]), nullptr);
    auto* const a = new Counted(&sources[0], &freed);
    auto* const b = new Counted(&sources[1], &freed);
    auto again = std::make_unique<Counted>(&sources[0], &freed);
    EXPECT_EQ(first.add(a), a);
    EXPECT_EQ(first.add(b), b);
    EXPECT_EQ(first.add(again.get()), a);
    DerivedData moved(std::move(first));
    EXPECT_EQ(moved.find(&sources[0]), a);
    EXPECT_EQ(moved.find(&sources[1]), b);
    EXPECT_EQ(moved.find(&sources[2]), nullptr);
    EXPECT_EQ(freed, 0);
  }
  EXPECT_EQ(freed, 2);
}

TEST(DerivedDataTest, ThreadsAgreeOnAnEntry) {
  const Loader loader(true);
  constexpr int kThreads = 4, kSources = 200;
  const char sources[kSources] = {};
  int freed = 0;
  std::vector<std::vector<DerivedData::Entry*>> found(kThreads);
  {
    DerivedData derived(&loader);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (const char& source : sources) {
          auto own = std::make_unique<Counted>(&source, &freed);
          found[t].push_back(derived.add(own.get()));
          if (found[t].back() == own.get()) (void)own.release();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (int t = 1; t < kThreads; ++t) EXPECT_EQ(found[t], found[0]);
  }
  EXPECT_EQ(freed, kSources);
}

}  // namespace
}  // namespace runtime
}  // namespace executorch
