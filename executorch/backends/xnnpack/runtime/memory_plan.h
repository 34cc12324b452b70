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
  /// Decides who shares memory with whom, from the nodes alone.
  explicit MemoryPlan(const Graph& graph);

  /// Lays the arena out for the present shapes, unless there is room for them already. Larger ones
  /// that it had room for before keep theirs if that is possible. False when it takes more than
  /// `max_bytes`; the graph must not run then.
  bool fit(const Graph& graph, int64_t max_bytes);
  int64_t arena_bytes() const { return arena_bytes_; }

  /// The node's output is its input's memory: nothing is left to do.
  bool is_elided(size_t node) const { return elided_[node]; }
  /// Sets the data of internal values; external ones and constants have theirs.
  void resolve(Graph& graph, uint8_t* arena) const;

 private:
  void join(const Graph& graph, uint32_t input, uint32_t output);
  bool joins(const Graph& graph, size_t node) const;
  bool in_arena(const Graph& graph, size_t id) const;
  bool has_room(const Graph& graph) const;
  bool lay_out(const Graph& graph, int64_t max_bytes);

  /// By value: the one whose memory it lies in; for that one: the last node that reads it or one
  /// that lies there, the external output that it lies in, its bytes and offset in the arena.
  std::vector<uint32_t> root_, output_;
  std::vector<size_t> last_use_;
  std::vector<int64_t> bytes_, offset_;
  std::vector<bool> elided_;
  int64_t arena_bytes_ = 0;
  /// The offsets are those of bytes_; not so before, and after a layout that was given up.
  bool is_laid_out_ = false;
};

}  // namespace executorch::backends::xnnpack
