/// Where the values of a graph lie while it runs.
///
/// Internal values share one arena: a place is used again after its last reader. A view (reshape,
/// copy) lies where its input does, an elementwise result over an input that nobody reads later,
/// and what ends in an external output is computed there.
#pragma once

#include <executorch/backends/xnnpack/runtime/graph.h>

namespace executorch::backends::xnnpack {

class MemoryPlan {
 public:
  /// Decides from the nodes alone which values share memory.
  explicit MemoryPlan(const Graph& graph);

  /// Gives every internal value a place in the arena for the present shapes. Keeps the layout there
  /// is if the shapes fit into it, and the size of places that were larger before if that is
  /// possible. False when the arena would be larger than `max_bytes`; the graph must not run then.
  bool fit(const Graph& graph, int64_t max_bytes);
  int64_t arena_bytes() const { return arena_bytes_; }

  /// Whether the node need not run, because its output has the memory of its input.
  bool is_elided(size_t node) const { return elided_[node]; }
  /// Sets `data` of internal values to their places in `arena`. Data of external values and
  /// constants is set elsewhere.
  void resolve(Graph& graph, uint8_t* arena) const;

 private:
  void join(const Graph& graph, uint32_t input, uint32_t output);
  bool joins(const Graph& graph, size_t node) const;
  bool in_arena(const Graph& graph, size_t id) const;
  bool has_room(const Graph& graph) const;
  bool lay_out(const Graph& graph, int64_t max_bytes);

  /// For each value, root_ is the value whose memory it shares. For a root: the last node that
  /// reads it or a value that shares its memory, the external output that it is computed in, its
  /// bytes, and its offset in the arena.
  std::vector<uint32_t> root_, output_;
  std::vector<size_t> last_use_;
  std::vector<int64_t> bytes_, offset_;
  std::vector<bool> elided_;
  int64_t arena_bytes_ = 0;
  /// Whether offset_ belongs to bytes_. False before the first layout, and after a layout that was
  /// too large.
  bool is_laid_out_ = false;
};

}  // namespace executorch::backends::xnnpack
