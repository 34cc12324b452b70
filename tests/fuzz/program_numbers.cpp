// Numbers that are changed together: sizes, pads, strides, dilations, lists.
#include <algorithm>
#include <limits>

#include "program_edit.h"

namespace executorch::fuzz {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kLarge[] = {int64_t{1} << 15,
                              int64_t{1} << 16,
                              int64_t{1} << 24,
                              int64_t{1} << 30,
                              (int64_t{1} << 31) - 1,
                              int64_t{1} << 31,
                              (int64_t{1} << 32) - 1,
                              int64_t{1} << 32,
                              int64_t{1} << 33,
                              int64_t{1} << 53,
                              int64_t{1} << 61,
                              int64_t{1} << 62,
                              kMax,
                              -kMax - 1,
                              -1,
                              0};

int64_t any_number(Random& random) {
  switch (random.below(8)) {
    case 0:
      return static_cast<int64_t>(random.below(64));
    case 1:
      return -static_cast<int64_t>(random.below(8));
    case 2:
      return static_cast<int64_t>(random.next() >> random.below(64));
    case 3:
      return static_cast<int64_t>(random.below(3000));
    default:
      return any_of(kLarge, random);
  }
}

}  // namespace

Numbers::Numbers(Random& random)
    : random_(random), n_(any_number(random)), is_equal_(random.chance(25)) {
  first_ = next(0);
}

// Wraps where it overflows.
int64_t Numbers::next(int64_t was) {
  if (is_equal_ && was != 0) return first_;
  constexpr int64_t kFactors[] = {1, 1, 1, 1, 2, 3, -1, -2};
  const uint64_t n = random_.chance(20)
                         ? static_cast<uint64_t>(n_ / (int64_t{1} << random_.below(4)))
                         : static_cast<uint64_t>(n_);
  const auto factor = static_cast<uint64_t>(any_of(kFactors, random_));
  const uint64_t rest = random_.chance(50)   ? 0
                        : random_.chance(50) ? static_cast<uint64_t>(was)
                                             : random_.below(9) - 4;
  return static_cast<int64_t>(factor * n + rest);
}

double any_double(Random& random) {
  using Limits = std::numeric_limits<double>;
  constexpr double kDoubles[] = {0.0,
                                 -0.0,
                                 1,
                                 -1,
                                 0.5,
                                 1e-30,
                                 1e30,
                                 1e308,
                                 -1e308,
                                 2147483648.0,
                                 9223372036854775808.0,
                                 -9223372036854777856.0,
                                 4e9,
                                 1e-8,
                                 Limits::min(),
                                 Limits::denorm_min(),
                                 Limits::max(),
                                 Limits::infinity(),
                                 -Limits::infinity(),
                                 Limits::quiet_NaN()};
  return any_of(kDoubles, random);
}

void Edit::Field::set(int64_t value) const {
  if (wide != nullptr) {
    *wide = value;
  } else {
    // Extents are not negative, most often.
    *extent = static_cast<int32_t>(value & (value % 16 == 11 ? -1 : 0x7FFFFFFF));
  }
}

// A list may have been rewired to name itself.
void Edit::add_fields(int64_t index, std::vector<Field>& fields, bool is_item) {
  fb::EValueT* found = value(index);
  if (found == nullptr) return;
  const auto add_items = [&](const auto& items) {
    for (size_t i = 0; !is_item && i < items.size(); ++i) add_fields(items[i], fields, true);
  };
  if (auto* integer = found->val.AsInt()) {
    fields.push_back({&integer->int_val, nullptr, nullptr});
  } else if (auto* of_tensor = found->val.AsTensor()) {
    for (int32_t& extent : of_tensor->sizes) fields.push_back({nullptr, &extent, of_tensor});
  } else if (auto* integers = found->val.AsIntList()) {
    add_items(integers->items);
  } else if (auto* tensors = found->val.AsTensorList()) {
    add_items(tensors->items);
  } else if (auto* optional = found->val.AsOptionalTensorList()) {
    add_items(optional->items);
  }
}

std::vector<Edit::Field> Edit::fields_of(const std::vector<int32_t>& args) {
  std::vector<Field> fields;
  for (const int32_t index : args) add_fields(index, fields);
  return fields;
}

void Edit::couple_numbers() {
  auto* args = any_arguments();
  if (args == nullptr) return;
  std::vector<Field> fields = fields_of(*args);
  // Arguments first: of extents there are many.
  if (random_.chance(60) &&
      std::any_of(fields.begin(), fields.end(), [](const Field& f) { return f.wide != nullptr; })) {
    fields.erase(std::remove_if(fields.begin(), fields.end(),
                                [](const Field& f) { return f.wide == nullptr; }),
                 fields.end());
  }
  if (fields.empty()) return;
  Numbers numbers(random_);
  const uint64_t count = random_.chance(20) ? fields.size() : 1 + random_.below(4);
  const bool is_repaired = random_.chance(95);
  for (uint64_t i = 0; i < count; ++i) {
    const Field& field = any_of(fields, random_);
    field.set(numbers.next(field.get()));
    if (field.tensor != nullptr && is_repaired) repair(*field.tensor);
  }
}

void Edit::replace_value() {
  std::vector<Field> fields;
  const bool everywhere = random_.chance(30);
  if (everywhere) {
    for (size_t i = 0; i < plan_.values.size(); ++i) {
      if (plan_.values[i]->val.AsTensor() != nullptr || plan_.values[i]->val.AsInt() != nullptr) {
        add_fields(static_cast<int64_t>(i), fields);
      }
    }
  } else if (auto* args = any_arguments()) {
    fields = fields_of(*args);
  }
  if (fields.empty()) return;
  const int64_t was = any_of(fields, random_).get();
  // Small ones often: the others must still fit to it.
  const int64_t becomes =
      random_.chance(50) ? static_cast<int64_t>(random_.below(70)) : Numbers(random_).next(was);
  for (const Field& field : fields) {
    if (field.get() == was && random_.chance(90)) {
      field.set(becomes);
      if (field.tensor != nullptr) repair(*field.tensor);
    }
  }
}

void Edit::change_doubles() {
  auto* args = any_arguments();
  if (args == nullptr) return;
  for (const int32_t index : *args) {
    fb::EValueT* found = value(index);
    if (found == nullptr || random_.chance(30)) continue;
    if (auto* number = found->val.AsDouble()) {
      number->double_val = any_double(random_);
    } else if (auto* list = found->val.AsDoubleList()) {
      for (double& item : list->items) item = random_.chance(50) ? any_double(random_) : item;
    } else if (auto* flag = found->val.AsBool()) {
      flag->bool_val = random_.chance(50);
    }
  }
}

void Edit::change_list_lengths() {
  auto* args = any_arguments();
  if (args == nullptr) return;
  const auto resize = [&](auto& items, auto filler) {
    const uint64_t choice = random_.below(4);
    if (choice == 0) {
      items.clear();
    } else if (choice == 1 && !items.empty()) {
      items.pop_back();
    } else {
      const uint64_t more = choice == 2 ? 1 : random_.below(20);
      for (uint64_t i = 0; i < more; ++i) {
        items.push_back(items.empty() ? filler : items[random_.below(items.size())]);
      }
    }
  };
  for (const int32_t index : *args) {
    fb::EValueT* found = value(index);
    if (found == nullptr || random_.chance(40)) continue;
    if (auto* integers = found->val.AsIntList()) {
      resize(integers->items, int64_t{0});
    } else if (auto* doubles = found->val.AsDoubleList()) {
      resize(doubles->items, any_double(random_));
    } else if (auto* flags = found->val.AsBoolList()) {
      resize(flags->items, true);
    } else if (auto* tensors = found->val.AsTensorList()) {
      resize(tensors->items, 0);
    } else if (auto* optional = found->val.AsOptionalTensorList()) {
      resize(optional->items, -1);
    }
  }
}

void Edit::change_shape() {
  auto* args = any_arguments();
  if (args == nullptr) return;
  for (fb::TensorT* found : tensors_of(*args)) {
    if (random_.chance(60)) continue;
    auto& sizes = found->sizes;
    const uint64_t choice = random_.below(6);
    if (choice == 0) {
      sizes.push_back(static_cast<int32_t>(random_.below(4)));
    } else if (choice == 1 && !sizes.empty()) {
      sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(random_.below(sizes.size())));
    } else if (choice == 2 && !sizes.empty()) {
      std::swap(any_of(sizes, random_), any_of(sizes, random_));
    } else if (choice == 3) {
      sizes.resize(random_.below(17), 1);
    } else if (!sizes.empty()) {
      any_of(sizes, random_) = static_cast<int32_t>(random_.below(choice == 4 ? 3 : 100));
    }
    repair(*found);
  }
}

}  // namespace executorch::fuzz
