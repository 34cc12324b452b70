#pragma once

#include <executorch/schema/objects/program_generated.h>

#include <cstdint>
#include <vector>

#include "program_mutation.h"

/// The parts of Seed::mutate. Whoever includes this sees the program as objects, and must not see
/// the runtime's own view of it, which has the same names.
namespace executorch::fuzz {

namespace fb = executorch_flatbuffer;

template <class T>
T& any_of(std::vector<T>& list, Random& random) {
  return list[random.below(list.size())];
}
template <class T, size_t n>
const T& any_of(const T (&list)[n], Random& random) {
  return list[random.below(n)];
}

/// Bytes that the tensors of a program may have together, roughly.
constexpr uint64_t kMaxBytes = 64 << 20;

/// A linear form of one number, a * n + b, for fields that belong together.
class Numbers {
 public:
  explicit Numbers(Random& random);
  int64_t next(int64_t was);

 private:
  Random& random_;
  int64_t n_;
  bool is_equal_;  // all fields get the same
  int64_t first_;
};

double any_double(Random& random);

/// One method of a program while it is changed.
class Edit {
 public:
  Edit(fb::ProgramT& program, fb::ExecutionPlanT& plan, Random& random)
      : program_(program), plan_(plan), random_(random) {}

  // Numbers (program_numbers.cpp).
  /// Several integers, extents included, of one instruction become forms of one number.
  void couple_numbers();
  /// All that have one value now get another, wherever they are.
  void replace_value();
  void change_doubles();
  void change_list_lengths();
  void change_shape();

  // Tensors (program_tensors.cpp).
  void change_types();
  void change_layout();
  void move_memory();
  /// The constants become inputs, whose shapes and bytes are chosen when it runs.
  void make_inputs();
  /// Two tensors of one instruction lie, or begin, at one place of planned memory.
  void overlap_memory();
  /// Room for results of any shape.
  void widen_results();

  // Structure (program_wiring.cpp).
  void rewire_arguments();
  void rewire_lists();
  void replace_argument();
  void rename_operator(const std::vector<std::pair<std::string, std::string>>& names);
  void add_instruction();
  void shuffle_instructions();
  void change_interface();
  void change_delegate();

 private:
  struct Field {
    int64_t* wide = nullptr;  // one of the two
    int32_t* extent = nullptr;
    fb::TensorT* tensor = nullptr;  // of the extent
    int64_t get() const { return wide != nullptr ? *wide : *extent; }
    void set(int64_t value) const;
  };

  fb::EValueT* value(int64_t index);
  fb::TensorT* tensor(int64_t index);
  int32_t add_value(fb::EValueT made);
  std::vector<fb::KernelCallT*> kernel_calls();
  std::vector<int32_t>* any_arguments();
  void add_fields(int64_t index, std::vector<Field>& fields, bool is_item = false);
  std::vector<Field> fields_of(const std::vector<int32_t>& args);
  std::vector<fb::TensorT*> tensors_of(const std::vector<int32_t>& args);

  /// Makes the tensor's shape one that Program::load takes, and gives it memory that holds it.
  void repair(fb::TensorT& tensor);
  void shrink(fb::TensorT& tensor);
  void give_memory(fb::TensorT& tensor, uint64_t bytes);
  bool make_input(int32_t index);
  bool plan_memory(fb::TensorT& tensor);

  fb::ProgramT& program_;
  fb::ExecutionPlanT& plan_;
  Random& random_;
};

uint64_t bytes_of(fb::ScalarType type);

}  // namespace executorch::fuzz
