#include <executorch/extension/llm/cache/cache_registry.h>
#include <executorch/extension/llm/cache/sequence_cache.h>
#include <executorch/runtime/platform/runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <thread>
#include <tuple>
#include <vector>

using namespace executorch::extension::llm::cache;

namespace {

constexpr int kMost = std::numeric_limits<int>::max();

CacheConfig config(int capacity, std::vector<LayerPolicy> policies, int n_layers,
                   std::optional<int> max_write = std::nullopt) {
  CacheConfig cfg = {capacity, n_layers, {}, 6, 512, max_write};
  for (const LayerPolicy& policy : policies) cfg.layers.push_back({policy, 1, 8});
  return cfg;
}

constexpr LayerPolicy kFlat = {};
constexpr LayerPolicy ring(int window) {
  return {LayerPolicy::Kind::Ring, window};
}

/// What a backend does, with a token's position in the place of its keys: every row that a step
/// reads must hold what was written there last, and that in order.
class Rows {
 public:
  Rows(int rows, int window) : rows_(static_cast<size_t>(rows), -1), window_(window) {}

  void step(const SeqStepPlan& plan, int position, int T) {
    int next = position;
    for (int i = 0; i < plan.n_write; ++i) {
      for (int r = 0; r < plan.write[i].len; ++r) at(plan.write[i].start + r) = next++;
    }
    EXPECT_EQ(next, position + T);
    int expected = plan.read_base_pos;
    EXPECT_EQ(expected, std::max(position - window_ + 1, 0));
    for (int i = 0; i < plan.n_read; ++i) {
      for (int r = 0; r < plan.read[i].len; ++r) EXPECT_EQ(at(plan.read[i].start + r), expected++);
    }
    EXPECT_EQ(expected, position + T);
  }

 private:
  int& at(int row) {
    EXPECT_GE(row, 0);
    EXPECT_LT(row, static_cast<int>(rows_.size()));
    return rows_[static_cast<size_t>(row)];
  }
  std::vector<int> rows_;
  int window_;
};

TEST(SequenceCache, ManyLayersOfOnePolicyTakeNoMemory) {
  SequenceCache cache(config(8, {kFlat}, kMost));
  EXPECT_TRUE(cache.plan(kMost - 1, 0, 8));
  EXPECT_FALSE(cache.plan(kMost, 0, 8));
}

TEST(SequenceCache, EveryStepReadsWhatWasWrittenLast) {
  for (int window : {1, 2, 5}) {
    for (int max_write : {1, 3, 7}) {
      SequenceCache cache(config(200, {kFlat, ring(window)}, 2, max_write));
      Rows flat(200, 200), round(window + max_write - 1, window);
      int position = 0;
      for (int i = 0; position < 150; ++i) {
        const int T = 1 + i % max_write;
        const auto all = cache.plan(0, position, T), last = cache.plan(1, position, T);
        ASSERT_TRUE(all && last);
        flat.step(*all, position, T);
        round.step(*last, position, T);
        cache.commit(*all);
        cache.commit(*last);
        position += T;
      }
      EXPECT_TRUE(cache.can_extend(200 - position));
      EXPECT_FALSE(cache.can_extend(200 - position + 1));
    }
  }
}

TEST(SequenceCache, StepsBackAsFarAsItsLayersRemember) {
  SequenceCache cache(config(100, {ring(4), kFlat, ring(8)}, 3, 20));
  cache.commit(*cache.plan(1, 0, 20));
  EXPECT_FALSE(cache.rewind(21));
  EXPECT_FALSE(cache.rewind(15)) << "the ring of 4 has forgotten it";
  EXPECT_FALSE(cache.rewind(-1));
  EXPECT_TRUE(cache.rewind(16));
  EXPECT_TRUE(cache.can_extend(84));
  EXPECT_FALSE(cache.can_extend(85));
  EXPECT_FALSE(cache.can_extend(-1));
  cache.clear();
  EXPECT_TRUE(cache.can_extend(100));

  SequenceCache all(config(10, {kFlat}, 4));
  all.commit(*all.plan(3, 0, 10));
  EXPECT_FALSE(all.can_extend());
  EXPECT_TRUE(all.can_extend(0));
  EXPECT_TRUE(all.rewind(0));
  EXPECT_EQ(all.capacity(), 10);
  EXPECT_EQ(all.as_control(), &all);
  EXPECT_EQ(all.as_planner(), &all);
}

TEST(SequenceCache, PlansNothingThatDoesNotFit) {
  SequenceCache cache(config(10, {kFlat, ring(3)}, 2));
  const std::vector<std::tuple<int, int, int>> steps = {
      {-1, 0, 1}, {2, 0, 1},  {kMost, 0, 1},     {0, -1, 1},    {0, 0, 0},     {0, 0, -5},
      {0, 0, 11}, {0, 10, 1}, {0, kMost, kMost}, {0, 5, kMost}, {0, kMost, 1}, {1, 0, 4}};
  for (const auto& [layer, position, T] : steps) {
    EXPECT_FALSE(cache.plan(layer, position, T)) << layer << ", " << position << ", " << T;
  }
  EXPECT_TRUE(cache.plan(0, 0, 10));
  EXPECT_TRUE(cache.plan(1, 7, 3));
  cache.commit({{}, 0, {{0, kMost}, {0, kMost}}, 2, kMost});
  EXPECT_FALSE(cache.can_extend());
}

TEST(SequenceCache, OfAnInvalidConfigurationHasNoRoom) {
  EXPECT_TRUE(valid(config(1, {kFlat}, 3)));
  EXPECT_TRUE(valid(config(1, {ring(kMost / 2)}, 3)));
  for (const CacheConfig& bad :
       {config(0, {kFlat}, 1), config(-4, {kFlat}, 1), config(8, {kFlat}, 0), config(8, {}, 1),
        config(8, {kFlat, kFlat}, 3), config(8, {ring(0)}, 1), config(8, {ring(-2)}, 1),
        config(8, {ring(kMost)}, 1), config(8, {ring(2)}, 1, kMost), config(8, {ring(2)}, 1, 0)}) {
    EXPECT_FALSE(valid(bad));
    SequenceCache cache(bad);
    EXPECT_FALSE(cache.can_extend());
    EXPECT_FALSE(cache.plan(0, 0, 1));
    EXPECT_TRUE(cache.rewind(0));
  }
}

TEST(CacheRegistry, ASessionInstallsItsCacheWhileItLives) {
  executorch::runtime::runtime_init();
  const std::string key = make_unique_key();
  EXPECT_NE(key, make_unique_key());
  auto cache = std::make_shared<SequenceCache>(config(8, {kFlat}, 1));
  std::shared_ptr<CacheBase> kept;
  {
    CacheSession session(key, cache);
    EXPECT_EQ(session.key(), key);
    EXPECT_EQ(session.control(), cache.get());
    kept = CacheRegistry::global().get(key);
    EXPECT_EQ(kept, cache);
  }
  EXPECT_EQ(CacheRegistry::global().get(key), nullptr);
  EXPECT_EQ(kept->as_control()->capacity(), 8);
  EXPECT_EQ(CacheSession(key, nullptr).control(), nullptr);
}

TEST(CacheBuilderRegistry, BuildsWhatABackendRegistered) {
  executorch::runtime::runtime_init();
  CacheBuilderRegistry& builders = CacheBuilderRegistry::global();
  const CacheConfig cfg = config(16, {kFlat}, 1);
  EXPECT_EQ(builders.build("Mine", "sequence", cfg).error(), Error::NotFound);
  builders.register_builder("Mine", "sequence", [](const CacheConfig& given) {
    return valid(given) ? std::make_shared<SequenceCache>(given) : nullptr;
  });
  const auto built = builders.build("Mine", "sequence", cfg);
  ASSERT_TRUE(built.ok());
  EXPECT_EQ((*built)->as_control()->capacity(), 16);
  EXPECT_EQ(builders.build("Mine", "cells", cfg).error(), Error::NotFound);
  EXPECT_EQ(builders.build("Mine", "sequence", config(0, {kFlat}, 1)).error(),
            Error::InvalidArgument);
}

TEST(CacheRegistry, ThreadsTakeTurns) {
  std::vector<std::thread> threads;
  std::vector<std::set<std::string>> keys(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&keys, i] {
      for (int n = 0; n < 200; ++n) {
        const std::string key = make_unique_key();
        keys[static_cast<size_t>(i)].insert(key);
        CacheSession session(key, std::make_shared<SequenceCache>(config(n + 1, {kFlat}, 1)));
        EXPECT_EQ(CacheRegistry::global().get(key)->as_control()->capacity(), n + 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> all;
  for (const auto& own : keys) all.insert(own.begin(), own.end());
  EXPECT_EQ(all.size(), 800u);
}

}  // namespace
