/// The epilogue of a matrix product or a convolution: the operators that follow it and can be
/// computed while its result is in registers.
#pragma once

#include <executorch/cpu/activation.h>
#include <executorch/kernels/optimized/graph.h>

#include <string>

namespace executorch::optimized {

/// A term that the epilogue adds.
struct EpilogueTerm {
  /// The value that is added; -1 if there is none.
  int value = -1;
  /// The number of Epilogue::steps() that come before the addition.
  size_t n_steps = 0;
};

/// act(x + addend) + residual, or act(x + addend + residual), with views in between that keep the
/// order of the elements.
class Epilogue {
 public:
  using Term = EpilogueTerm;

  /// Finds the epilogue of node `root`. All its tensors must have the type of the root's result.
  /// `addend` is a term that the root itself adds, such as a bias. Unless `takes_more`, only an
  /// activation and a residual of the same shape are taken.
  Epilogue(const Graph& graph, int root, bool takes_more, Term addend = {});

  /// The last node of the epilogue; the root if the epilogue is empty.
  int last() const { return last_; }
  /// The name of what is added, such as "+bias+gelu".
  const std::string& name() const { return kept_.name; }
  const Term& addend() const { return kept_.addend; }
  const Term& residual() const { return kept_.residual; }
  const cpu::Activation& act() const { return kept_.act; }
  bool act_last() const { return kept_.act_last; }
  /// The views between the root and the last node, in order.
  const std::vector<Step>& steps() const { return steps_; }

 private:
  struct State {
    std::string name;
    Term addend, residual;
    cpu::Activation act;
    bool act_last = false;
  };

  bool is(int n, std::string_view op) const { return graph_.is(n, op); }
  bool is_operand(int v) const;
  /// Each makes the node a part of the epilogue. Returns false if it cannot be one.
  bool absorb(int node, int value);
  bool set(cpu::Activation act, const char* name);
  bool absorb_activation(int node);
  bool absorb_term(int node, int value);
  bool bound(int node, size_t arg, float& bound) const;
  int find_gated(int value, const std::vector<int>& uses);

  const Graph& graph_;
  const int block_;
  const bool takes_more_;
  aten::ScalarType type_;
  int last_;
  State state_, kept_;
  std::vector<Step> steps_;
};

}  // namespace executorch::optimized
