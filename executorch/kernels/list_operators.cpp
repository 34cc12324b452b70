/// Prints the names of all operators linked in, one per line, sorted: what an exported program may
/// call. The exporter's operator table is made of it.
#include <executorch/runtime/kernel/operator_registry.h>

#include <cstdio>
#include <set>
#include <string>

int main() {
  std::set<std::string> names;
  for (const auto& kernel : executorch::runtime::get_registered_kernels()) {
    names.insert(kernel.name_);
  }
  for (const std::string& name : names) printf("%s\n", name.c_str());
  return names.empty() ? 1 : 0;
}
