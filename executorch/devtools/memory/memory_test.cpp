#include <executorch/devtools/memory/memory_plan.h>
#include <gtest/gtest.h>

namespace executorch::devtools {
namespace {

Json tensor(int64_t offset, int64_t bytes) {
  return {{"type", "Tensor"}, {"dtype", "Byte"},  {"sizes", {bytes}},
          {"memory", 1},      {"offset", offset}, {"bytes", bytes}};
}

Json kernel(const std::string& op, const std::vector<int>& args) {
  return {{"type", "kernel"}, {"operator", op}, {"args", args}};
}

/// %0 -> %1 (64) -> %2 (128) -> %3 (64, in the place of %1)
Json chain_of_three() {
  return {{"name", "forward"},
          {"inputs", {0}},
          {"outputs", {3}},
          {"memory", {{{"id", 1}, {"bytes", 208}}}},
          {"values", {tensor(192, 16), tensor(0, 64), tensor(64, 128), tensor(0, 64)}},
          {"delegates", Json::array()},
          {"chains", {{kernel("a", {0, 1, 1}), kernel("b", {1, 2, 2}), kernel("c", {2, 3, 3})}}}};
}

TEST(MemoryPlan, TensorsLiveFromTheFirstMentionToTheLast) {
  const MemoryPlan plan = read_memory_plan(chain_of_three());
  ASSERT_EQ(plan.arenas.size(), 1u);
  const auto& tensors = plan.arenas[0].tensors;
  ASSERT_EQ(tensors.size(), 4u);
  EXPECT_EQ(tensors[0].first, 0);  // an input
  EXPECT_EQ(tensors[0].last, 1);
  EXPECT_EQ(tensors[1].first, 1);
  EXPECT_EQ(tensors[1].last, 2);
  EXPECT_EQ(tensors[2].last, 3);
  EXPECT_EQ(tensors[3].last, 4);  // an output
  EXPECT_EQ(tensors[1].name, "a");
  EXPECT_EQ(tensors[0].name, "input");
}

TEST(MemoryPlan, PeakIsTheLargestSumAndItsFirstStep) {
  const MemoryArena arena = read_memory_plan(chain_of_three()).arenas[0];
  EXPECT_EQ(arena.peak_bytes, 64u + 128u);
  EXPECT_EQ(arena.peak_step, 2);
  EXPECT_EQ(arena.live_bytes[0], 16u);
  EXPECT_EQ(arena.live_bytes[1], 16u + 64u);
}

TEST(MemoryPlan, WithoutTheLargestThePlanIsSmaller) {
  const MemoryArena arena = read_memory_plan(chain_of_three()).arenas[0];
  EXPECT_EQ(arena.replanned, 192u);
  ASSERT_EQ(arena.without.size(), 4u);
  EXPECT_EQ(arena.tensors[arena.without[0].tensor].value, 2);
  EXPECT_EQ(arena.without[0].bytes, 80u);  // %0 and %1
}

// A table of arenas for each step would be larger than any file.
TEST(MemoryPlan, ManyArenasInManyStepsAreRefused) {
  for (const int n_arenas : {2, 5000}) {
    Json method = chain_of_three();
    method["chains"] = Json::array({Json::array()});
    for (int i = 0; i < 10000; ++i) method["chains"][0].push_back(kernel("a", {0, 1, 1}));
    for (int id = 2; id <= n_arenas; ++id) method["memory"].push_back({{"id", id}, {"bytes", 1}});
    if (n_arenas == 2) {
      EXPECT_EQ(read_memory_plan(method).arenas.size(), 2u);
    } else {
      EXPECT_THROW(read_memory_plan(method), InspectError);
    }
  }
}

TEST(MemoryPlan, AListOfResultsBeginsWhereItIsWritten) {
  // %1, then %3 and %2 by an operator whose list of results stands there twice.
  Json method = chain_of_three();
  for (int i = 0; i < 2; ++i) {
    method["values"].push_back({{"type", "TensorList"}, {"items", {3, 2}}});
  }
  method["outputs"] = {2};
  method["chains"] = {{kernel("a", {0, 1, 1}), kernel("b", {0, 0}), kernel("split", {0, 4, 5})}};
  const auto tensors = read_memory_plan(method).arenas[0].tensors;
  EXPECT_EQ(tensors[1].last, 1);
  EXPECT_EQ(tensors[3].first, 3);
  EXPECT_EQ(tensors[2].first, 3);
}

TEST(MemoryPlan, WhatLiesInTheSamePlaceIsInUseOnce) {
  Json method = chain_of_three();
  method["values"][3] = tensor(32, 96);  // over the ends of %1, which %4 has a part of, and %2
  method["values"].push_back(tensor(16, 8));
  method["chains"] = {{kernel("a", {0, 1, 1}), kernel("b", {1, 2, 2}), kernel("c", {2, 1, 4, 3})}};
  const MemoryArena arena = read_memory_plan(method).arenas[0];
  EXPECT_EQ(arena.live_bytes[3], 192u);
}

TEST(MemoryPlan, AViewKeepsItsBaseAlive) {
  Json method = chain_of_three();
  method["values"].push_back({{"type", "Tensor"}, {"dtype", "Byte"}, {"sizes", {64}}});
  method["values"].push_back(tensor(208, 16));
  method["chains"][0].insert(method["chains"][0].begin() + 1,
                             kernel("executorch_prim::et_view.default", {1, 2, 4}));
  method["chains"][0].push_back(kernel("d", {4, 5, 5}));
  EXPECT_EQ(read_memory_plan(method).arenas[0].tensors[1].last, 5);
}

TEST(MemoryPlan, WhatALoopUsesFromBeforeLivesToItsEnd) {
  Json method = chain_of_three();
  method["values"].push_back({{"type", "Bool"}, {"value", true}});
  method["chains"][0].push_back({{"type", "jump_if_false"}, {"condition", 4}, {"destination", 1}});
  // %1 is made before the loop and read in its first instruction.
  EXPECT_EQ(read_memory_plan(method).arenas[0].tensors[1].last, 4);
}

TEST(MemoryPlan, PictureAndTextNameEveryTensorAndThePeak) {
  const MemoryPlan plan = read_memory_plan(chain_of_three());
  const std::string text = to_text(plan), svg = to_svg(plan, plan.arenas[0]);
  EXPECT_NE(text.find("arena 1: 208 bytes for 4 tensors; at most 192 are in use, at step 2 (b)"),
            std::string::npos)
      << text;
  EXPECT_NE(svg.find("peak: 192 B in use at 2, b"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  size_t boxes = 0;
  for (size_t at = 0; (at = svg.find("<title>%", at)) != std::string::npos; ++at) ++boxes;
  EXPECT_EQ(boxes, 4u);
  EXPECT_EQ(to_json(plan)["arenas"][0]["tensors"][3]["last"], 4);
}

}  // namespace
}  // namespace executorch::devtools
