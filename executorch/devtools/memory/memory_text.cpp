#include <executorch/devtools/inspect/table.h>
#include <executorch/devtools/memory/memory_plan.h>

namespace executorch::devtools {
namespace {

std::string steps_text(const PlannedTensor& tensor) {
  return std::to_string(tensor.first) + " - " + std::to_string(tensor.last);
}

std::string operator_at(const MemoryPlan& plan, int64_t step) {
  const std::string& name = plan.operators[static_cast<size_t>(step)];
  return name.empty() ? "" : " (" + name + ")";
}

std::string arena_text(const MemoryPlan& plan, const MemoryArena& arena) {
  std::string out = "arena " + std::to_string(arena.id) + ": " + std::to_string(arena.bytes) +
                    " bytes for " + std::to_string(arena.tensors.size()) + " tensors; at most " +
                    std::to_string(arena.peak_bytes) + " are in use, at step " +
                    std::to_string(arena.peak_step) + operator_at(plan, arena.peak_step) + "\n";
  Table tensors({"  tensor", "bytes", "offset", "steps", "<type", "<module"});
  for (const PlannedTensor& tensor : arena.tensors) {
    const bool at_peak = tensor.first <= arena.peak_step && arena.peak_step <= tensor.last;
    tensors.add(
        {(at_peak ? "* %" : "  %") + std::to_string(tensor.value) + " " + shorten(tensor.name, 40),
         std::to_string(tensor.bytes), std::to_string(tensor.offset), steps_text(tensor),
         tensor.type, tensor.module});
  }
  out += tensors.text() + "  * in use at the peak\n\n";
  if (arena.without.empty() && !arena.tensors.empty()) {
    return out + "planned anew: there are too many tensors to do that\n\n";
  }
  Table without({"planned anew", "bytes", "saved"});
  without.add({"with all", std::to_string(arena.replanned), ""});
  for (const auto& [index, bytes] : arena.without) {
    const PlannedTensor& tensor = arena.tensors[index];
    without.add(
        {"without %" + std::to_string(tensor.value) + " " + shorten(tensor.name, 40) + ", " +
             std::to_string(tensor.bytes) + " bytes",
         std::to_string(bytes),
         format_bytes(static_cast<double>(arena.replanned - std::min(bytes, arena.replanned)))});
  }
  return out + without.text() + "\n";
}

}  // namespace

std::string to_text(const MemoryPlan& plan) {
  std::string out = "method " + plan.method + ": " + std::to_string(plan.n_steps - 2) +
                    " instructions (step 0 is before the first)\n\n";
  for (const MemoryArena& arena : plan.arenas) out += arena_text(plan, arena);
  return out;
}

Json to_json(const MemoryPlan& plan) {
  Json out = {{"method", plan.method}, {"steps", plan.n_steps}, {"arenas", Json::array()}};
  for (const MemoryArena& arena : plan.arenas) {
    Json entry = {{"id", arena.id},
                  {"bytes", arena.bytes},
                  {"peak_bytes", arena.peak_bytes},
                  {"peak_step", arena.peak_step},
                  {"replanned_bytes", arena.replanned},
                  {"tensors", Json::array()},
                  {"without", Json::array()}};
    for (const PlannedTensor& tensor : arena.tensors) {
      entry["tensors"].push_back({{"value", tensor.value},
                                  {"name", tensor.name},
                                  {"module", tensor.module},
                                  {"type", tensor.type},
                                  {"offset", tensor.offset},
                                  {"bytes", tensor.bytes},
                                  {"first", tensor.first},
                                  {"last", tensor.last}});
    }
    for (const auto& [index, bytes] : arena.without) {
      entry["without"].push_back({{"value", arena.tensors[index].value}, {"bytes", bytes}});
    }
    out["arenas"].push_back(std::move(entry));
  }
  return out;
}

}  // namespace executorch::devtools
