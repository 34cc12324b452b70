// Which values instructions take, in which order they run, and what a method takes and gives.
#include <algorithm>

#include "program_edit.h"

namespace executorch::fuzz {

fb::EValueT* Edit::value(int64_t index) {
  return index >= 0 && static_cast<uint64_t>(index) < plan_.values.size()
             ? plan_.values[static_cast<size_t>(index)].get()
             : nullptr;
}

fb::TensorT* Edit::tensor(int64_t index) {
  fb::EValueT* found = value(index);
  return found == nullptr ? nullptr : found->val.AsTensor();
}

int32_t Edit::add_value(fb::EValueT made) {
  plan_.values.push_back(std::make_unique<fb::EValueT>(std::move(made)));
  return static_cast<int32_t>(plan_.values.size() - 1);
}

std::vector<fb::KernelCallT*> Edit::kernel_calls() {
  std::vector<fb::KernelCallT*> calls;
  for (auto& chain : plan_.chains) {
    for (auto& instruction : chain->instructions) {
      if (auto* call = instruction->instr_args.AsKernelCall()) calls.push_back(call);
    }
  }
  return calls;
}

// Of a kernel or a delegate.
std::vector<int32_t>* Edit::any_arguments() {
  std::vector<std::vector<int32_t>*> all;
  for (auto& chain : plan_.chains) {
    for (auto& instruction : chain->instructions) {
      if (auto* call = instruction->instr_args.AsKernelCall()) {
        all.push_back(&call->args);
      } else if (auto* delegate = instruction->instr_args.AsDelegateCall()) {
        all.push_back(&delegate->args);
      }
    }
  }
  return all.empty() ? nullptr : any_of(all, random_);
}

std::vector<fb::TensorT*> Edit::tensors_of(const std::vector<int32_t>& args) {
  std::vector<fb::TensorT*> found;
  const auto add = [&](int64_t index) {
    fb::TensorT* one = tensor(index);
    if (one != nullptr && std::find(found.begin(), found.end(), one) == found.end()) {
      found.push_back(one);
    }
  };
  for (const int32_t index : args) {
    add(index);
    fb::EValueT* any = value(index);
    if (any == nullptr) continue;
    if (auto* list = any->val.AsTensorList()) {
      std::for_each(list->items.begin(), list->items.end(), add);
    } else if (auto* optional = any->val.AsOptionalTensorList()) {
      std::for_each(optional->items.begin(), optional->items.end(), add);
    }
  }
  return found;
}

void Edit::rewire_arguments() {
  auto* args = any_arguments();
  if (args == nullptr || args->empty()) return;
  const size_t count = args->size();
  const size_t at = random_.below(count);
  int32_t& slot = (*args)[at];
  switch (random_.below(5)) {
    case 0:
      std::swap(slot, any_of(*args, random_));
      break;
    case 1: {  // another of the same kind
      std::vector<int32_t> alike;
      for (size_t i = 0; i < plan_.values.size(); ++i) {
        if (value(slot) != nullptr && plan_.values[i]->val.type == value(slot)->val.type) {
          alike.push_back(static_cast<int32_t>(i));
        }
      }
      slot = alike.empty() ? slot : any_of(alike, random_);
      break;
    }
    case 2:  // the result lies where an argument does
      slot = any_of(*args, random_);
      if (count > 1 && random_.chance(70)) (*args)[count - 1] = (*args)[count - 2] = slot;
      break;
    case 3:
      slot = static_cast<int32_t>(random_.below(plan_.values.size() + 1));
      break;
    default: {  // the result names a constant
      for (size_t i = 0; i < plan_.values.size(); ++i) {
        const fb::TensorT* one = tensor(static_cast<int64_t>(i));
        if (one != nullptr && one->allocation_info == nullptr && random_.chance(50)) {
          (*args)[count - 1] = static_cast<int32_t>(i);
          if (count > 1) (*args)[count - 2] = static_cast<int32_t>(i);
          return;
        }
      }
    }
  }
}

void Edit::rewire_lists() {
  auto* args = any_arguments();
  if (args == nullptr) return;
  for (const int32_t index : *args) {
    fb::EValueT* found = value(index);
    if (found == nullptr) continue;
    const auto any_value = [&] { return static_cast<int32_t>(random_.below(plan_.values.size())); };
    if (auto* tensors = found->val.AsTensorList(); tensors != nullptr && !tensors->items.empty()) {
      any_of(tensors->items, random_) =
          random_.chance(60) ? any_of(tensors->items, random_) : any_value();
    } else if (auto* optional = found->val.AsOptionalTensorList();
               optional != nullptr && !optional->items.empty()) {
      any_of(optional->items, random_) = random_.chance(50)   ? -1
                                         : random_.chance(50) ? any_of(optional->items, random_)
                                                              : any_value();
    } else if (auto* integers = found->val.AsIntList();
               integers != nullptr && !integers->items.empty()) {
      any_of(integers->items, random_) =
          random_.chance(60) ? any_of(integers->items, random_) : any_value();
    }
  }
}

// None, or a number of another kind.
void Edit::replace_argument() {
  auto* args = any_arguments();
  if (args == nullptr || args->empty()) return;
  fb::EValueT made;
  switch (random_.below(5)) {
    case 0:
      made.val.Set(fb::NullT());
      break;
    case 1:
      made.val.Set(fb::IntT());
      made.val.AsInt()->int_val = Numbers(random_).next(0);
      break;
    case 2:
      made.val.Set(fb::DoubleT());
      made.val.AsDouble()->double_val = any_double(random_);
      break;
    case 3:
      made.val.Set(fb::BoolT());
      made.val.AsBool()->bool_val = random_.chance(50);
      break;
    default:
      made.val.Set(fb::StringT());
      made.val.AsString()->string_val = random_.chance(50) ? "" : "trunc";
  }
  any_of(*args, random_) = add_value(std::move(made));
}

void Edit::rename_operator(const std::vector<std::pair<std::string, std::string>>& names) {
  if (plan_.operators.empty() || names.empty()) return;
  auto& op = any_of(plan_.operators, random_);
  const auto& [name, overload] = names[random_.below(names.size())];
  op->name = name;
  op->overload = overload;
}

void Edit::add_instruction() {
  if (plan_.chains.empty() || plan_.values.empty()) return;
  auto& list = any_of(plan_.chains, random_)->instructions;
  auto made = std::make_unique<fb::InstructionT>();
  const auto any_value = [&] { return static_cast<int32_t>(random_.below(plan_.values.size())); };
  switch (random_.below(4)) {
    case 0: {
      made->instr_args.Set(fb::FreeCallT());
      int32_t& freed = made->instr_args.AsFreeCall()->value_index;
      for (int i = 0; i < 8 && tensor(freed = any_value()) == nullptr; ++i) {
      }
      break;
    }
    case 1: {
      made->instr_args.Set(fb::MoveCallT());
      auto& move = *made->instr_args.AsMoveCall();
      move.move_from = any_value();
      for (int i = 0; i < 8; ++i) {
        move.move_to = any_value();
        if (value(move.move_to)->val.type == value(move.move_from)->val.type) break;
      }
      break;
    }
    case 2: {
      fb::EValueT flag;
      flag.val.Set(fb::BoolT());
      flag.val.AsBool()->bool_val = random_.chance(40);
      made->instr_args.Set(fb::JumpFalseCallT());
      auto& jump = *made->instr_args.AsJumpFalseCall();
      jump.cond_value_index = random_.chance(80) ? add_value(std::move(flag)) : any_value();
      jump.destination_instruction = static_cast<int32_t>(random_.below(list.size() + 3));
      break;
    }
    default: {
      auto calls = kernel_calls();
      if (calls.empty()) return;
      made->instr_args.Set(fb::KernelCallT());
      auto& call = *made->instr_args.AsKernelCall();
      const fb::KernelCallT& model = *any_of(calls, random_);
      call.op_index = model.op_index;
      call.args = model.args;
      if (random_.chance(50) && !call.args.empty()) {
        std::swap(any_of(call.args, random_), any_of(call.args, random_));
      }
    }
  }
  const auto at = static_cast<std::ptrdiff_t>(random_.below(list.size() + 1));
  list.insert(list.begin() + at, std::move(made));
}

void Edit::shuffle_instructions() {
  if (plan_.chains.empty()) return;
  auto& list = any_of(plan_.chains, random_)->instructions;
  if (list.empty()) return;
  switch (random_.below(3)) {
    case 0:
      std::swap(any_of(list, random_), any_of(list, random_));
      break;
    case 1:
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(random_.below(list.size())));
      break;
    default:
      for (auto& instruction : list) {
        if (auto* jump = instruction->instr_args.AsJumpFalseCall()) {
          jump->destination_instruction = static_cast<int32_t>(random_.below(list.size() + 2));
        } else if (auto* move = instruction->instr_args.AsMoveCall(); move && random_.chance(50)) {
          std::swap(move->move_from, move->move_to);
        }
      }
  }
}

void Edit::change_interface() {
  auto& list = random_.chance(50) ? plan_.inputs : plan_.outputs;
  const auto any_value = static_cast<int32_t>(random_.below(plan_.values.size() + 1));
  if (random_.chance(40) || list.empty()) {
    list.push_back(any_value);
  } else if (random_.chance(50)) {
    any_of(list, random_) = any_value;
  } else {
    list.push_back(any_of(list, random_));
  }
}

void Edit::change_delegate() {
  if (plan_.delegates.empty()) return;
  auto& delegate = *any_of(plan_.delegates, random_);
  switch (random_.below(3)) {
    case 0:
      delegate.id = any_of(plan_.delegates, random_)->id;
      break;
    case 1:
      if (delegate.processed != nullptr) {
        delegate.processed->index = static_cast<uint32_t>(random_.below(4));
      }
      break;
    default:
      delegate.compile_specs.push_back(std::make_unique<fb::CompileSpecT>());
      delegate.compile_specs.back()->key = "key";
      delegate.compile_specs.back()->value.assign(random_.below(9), 7);
  }
}

}  // namespace executorch::fuzz
