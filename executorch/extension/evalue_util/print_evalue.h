#pragma once

#include <executorch/runtime/core/evalue.h>

#include <ostream>

namespace executorch {
namespace runtime {

/// Prints a value of any kind: None, True, 3, 2.5, "text", (len=2)[1, 2],
/// tensor(sizes=[2, 2], [1., 2., 3., 4.]). Elements of a tensor come in the order of their indices,
/// whatever the dim order. Long lists show their first and last elements only.
std::ostream& operator<<(std::ostream& os, const EValue& value);

}  // namespace runtime

namespace extension {

/// os << evalue_edge_items(10): lists and tensors of more than 20 elements that are printed to this
/// stream afterwards show the first and last 10. Without it, or with a number below 1, it is 3.
class evalue_edge_items final {
 public:
  explicit evalue_edge_items(long edge_items) : edge_items_(edge_items < 1 ? 0 : edge_items) {}

  friend std::ostream& operator<<(std::ostream& os, const evalue_edge_items& e) {
    e.set_on(os);
    return os;
  }

 private:
  void set_on(std::ostream& os) const;

  const long edge_items_;
};

}  // namespace extension
}  // namespace executorch

namespace torch::executor::util {
using ::executorch::extension::evalue_edge_items;
}  // namespace torch::executor::util
