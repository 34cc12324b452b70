/// Layers of which only some rows count, such as the experts of a mixture.
///
/// A mixture that computes every expert of every token multiplies the results of each expert by one
/// factor a token, zero for tokens that did not pick it, and adds them up:
///
///   x ──> FullyConnected ──> ... ──> FullyConnected ──> Multiply ──> Add
///                                      factor [..., 1] ─┘
/// Here an expert computes the rows whose factor is not zero, and none of its weights are read
/// where there are none. A row whose factor is zero is zero, even if what was not computed would be
/// infinite or no number.
#pragma once

#include <executorch/backends/xnnpack/runtime/graph.h>
#include <executorch/cpu/scratch.h>

#include <span>
#include <vector>

namespace executorch::backends::xnnpack {

/// Nodes [first, multiply] of a graph, each of which computes a row of its result from the same row
/// of its operands. No other node reads what they compute, but for the product.
struct RowGroup {
  size_t first = 0, multiply = 0;
  uint32_t factor = kNoId;
  /// What the nodes read and do not compute, the factor included, but for constants; and what they
  /// compute.
  std::vector<uint32_t> sources, results;
  /// Whether all these have the same number of rows in the present call.
  bool fits = false;
};

/// Finds the groups of a graph, in order, and moves the nodes of each together. Throws where a
/// container finds no memory.
std::vector<RowGroup> find_row_groups(Graph& graph);

/// Call when shapes changed.
void fit_row_groups(const Graph& graph, std::span<RowGroup> groups);

/// The rows that a group computes in the present call. While it exists, the values of the group
/// have these rows alone.
class SelectedRows {
 public:
  /// The sources have to be there. Memory comes from `scratch`; if it is refused, all rows are
  /// computed.
  SelectedRows(Graph& graph, const RowGroup& group, cpu::Scratch& scratch);
  /// Gives values their shapes and data back, and the product all of its rows.
  ~SelectedRows();
  SelectedRows(const SelectedRows&) = delete;
  SelectedRows& operator=(const SelectedRows&) = delete;

  bool none() const { return count_ == 0; }

 private:
  struct Saved {
    uint32_t id;
    Shape shape;
    void* data;
  };
  bool choose(cpu::Scratch& scratch);
  bool gather(cpu::Scratch& scratch);
  void spread();

  Graph& graph_;
  const RowGroup& group_;
  const cpu::Scratch::Frame frame_;
  int64_t n_;          // all rows
  int64_t count_ = 0;  // those computed
  int64_t* rows_ = nullptr;
  Saved* saved_ = nullptr;
  size_t n_saved_ = 0;
};

}  // namespace executorch::backends::xnnpack
