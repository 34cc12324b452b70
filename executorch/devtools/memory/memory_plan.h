#pragma once

#include <executorch/devtools/inspect/describe.h>

#include <cstdint>
#include <string>
#include <vector>

/// What a method's planned memory holds, and when. A program says where tensors lie, not how long:
/// a tensor lives from the first instruction that mentions it to the last, in itself or through a
/// view; inputs live from the beginning, outputs and buffers with an initial state to the end. What
/// is used inside a loop and was there before it lives to the loop's end.
namespace executorch::devtools {

struct PlannedTensor {
  int64_t value = 0;  ///< index in the method
  /// The tensor's own name, or that of the operator that computes it.
  std::string name = "";
  std::string module = "";
  std::string type = "";  ///< "Float [1,768]"; sizes are upper bounds
  uint64_t offset = 0;
  uint64_t bytes = 0;
  /// Steps, both included: 0 is before the first instruction, i + 1 is instruction i.
  int64_t first = 0;
  int64_t last = 0;
};

struct MemoryArena {
  int64_t id = 0;
  uint64_t bytes = 0;
  std::vector<PlannedTensor> tensors = {};
  /// The largest sum of live bytes (no plan is smaller), and the first step that has it.
  uint64_t peak_bytes = 0;
  int64_t peak_step = 0;
  /// The sizes that a new plan would have: with all tensors, and without one of the largest.
  struct Without {
    size_t tensor;  ///< index in `tensors`
    uint64_t bytes;
  };
  /// Not computed for arenas with very many tensors.
  uint64_t replanned = 0;
  std::vector<Without> without = {};

  /// The bytes in use at each step. Tensors at one place (aliases) count once.
  std::vector<uint64_t> live_bytes = {};
};

struct MemoryPlan {
  std::string method;
  int64_t n_steps = 0;
  /// Operators by step, "" for step 0.
  std::vector<std::string> operators;
  std::vector<MemoryArena> arenas;
};

/// Reads the plan from a method in a program's description (describe_file()). Throws InspectError
/// for a method whose instructions mention long lists so often that this would take minutes.
MemoryPlan read_memory_plan(const Json& method);

std::string to_text(const MemoryPlan& plan);
Json to_json(const MemoryPlan& plan);
/// A picture of one arena: time to the right, addresses upwards, the peak marked. A whole file, or
/// with `embedded` a part of an HTML page, which then gives the colours.
std::string to_svg(const MemoryPlan& plan, const MemoryArena& arena, bool embedded = false);

}  // namespace executorch::devtools
