/// Recognises masks that hide the keys behind the diagonal, however a program computes them.
#pragma once

#include <executorch/kernels/optimized/arena.h>
#include <executorch/kernels/optimized/graph.h>

#include <memory>
#include <optional>

namespace executorch::optimized {

/// Key j is visible to query i where j - i <= offset.
struct Triangle {
  /// The offset, to which the number that `first` holds is added.
  int64_t fixed_offset = 0;
  /// The position of the first query in the text, where keys of earlier calls are cached; null: 0.
  const EValue* first = nullptr;
  /// What holds the extents of the mask in a call: two numbers, or the sizes of a chain.
  const EValue* rows = nullptr;
  const EValue* cols = nullptr;
  bool has_shape = false;
  Operand shape = {};

  /// The offset in this call; nothing if the mask does not have these extents, or if it hides every
  /// key from some query.
  std::optional<int64_t> offset(int64_t n_rows, int64_t n_cols) const;
};

/// The triangles of a graph, whose masks do not change. Each value is evaluated once.
class Triangles {
 public:
  explicit Triangles(const Graph& graph);
  ~Triangles();

  /// `value` is added to the scores: 0 where visible and else -infinity, or as low as makes no
  /// difference.
  std::optional<Triangle> added(int value, int block, Arena& arena);
  /// `value` is a condition that holds where a key is `visible`, or where it is not.
  std::optional<Triangle> of(int value, bool visible, int block, Arena& arena);

 private:
  class Evaluator;
  const Graph& graph_;
  std::unique_ptr<Evaluator> evaluator_;
};

}  // namespace executorch::optimized
