/// Recognizes causal masks, which hide the keys behind a diagonal, however a program computes them.
#pragma once

#include <executorch/kernels/optimized/arena.h>
#include <executorch/kernels/optimized/graph.h>

#include <memory>
#include <optional>

namespace executorch::optimized {

/// Key j is visible to query i where j - i <= offset.
struct CausalMask {
  /// The constant part of the offset; the number that `first` holds is added to it.
  int64_t fixed_offset = 0;
  /// Holds the position of the first query in the text, where keys of earlier calls are cached.
  /// Null means position 0.
  const EValue* first = nullptr;
  /// The extents of the mask in a call: the numbers that `rows` and `cols` hold, or the sizes of
  /// `shape`.
  const EValue* rows = nullptr;
  const EValue* cols = nullptr;
  bool has_shape = false;
  Operand shape = {};

  /// The offset in this call. Nothing if the extents of the mask are not n_rows and n_cols, or if
  /// it hides every key from some query.
  std::optional<int64_t> offset(int64_t n_rows, int64_t n_cols) const;
};

/// Finds the causal masks of a graph. Each value is evaluated only once.
class CausalMasks {
 public:
  explicit CausalMasks(const Graph& graph);
  ~CausalMasks();

  /// Returns the causal mask that `value` holds, to be added to the scores: 0 where a key is
  /// visible and -infinity elsewhere, or a number so low that it makes no difference. Returns
  /// nothing if the value is no such mask.
  std::optional<CausalMask> added(int value, int block, Arena& arena);
  /// Returns the causal mask that the boolean `value` holds: true where a key is visible if
  /// `visible`, or where it is hidden if not. Returns nothing if the value is no such mask.
  std::optional<CausalMask> of(int value, bool visible, int block, Arena& arena);

 private:
  class Evaluator;
  const Graph& graph_;
  std::unique_ptr<Evaluator> evaluator_;
};

}  // namespace executorch::optimized
