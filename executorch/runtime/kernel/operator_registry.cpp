#include <executorch/runtime/kernel/operator_registry.h>

#ifndef MAX_KERNEL_NUM
#ifdef EXECUTORCH_SELECTED_MAX_KERNEL_NUM  // of codegen/tools/gen_max_kernel_num.py
#define MAX_KERNEL_NUM EXECUTORCH_SELECTED_MAX_KERNEL_NUM
#else
#define MAX_KERNEL_NUM 2000
#endif
#endif

namespace executorch::ET_RUNTIME_NAMESPACE {
namespace {

// All zero before the program starts, so that it costs no bytes of the executable and static
// initialisers of other files may register.
Kernel table[MAX_KERNEL_NUM];
size_t n_kernels = 0;

/// Compares a key with tensors while both are walked once, so that no text needs to be built.
class KeyCursor {
 public:
  explicit KeyCursor(const char* text) : text_(text) {}

  bool accept(char expected) {
    if (*text_ != expected) return false;
    ++text_;
    return true;
  }

  bool accept_number(unsigned expected) {
    unsigned value = 0;
    const char* start = text_;
    for (; *text_ >= '0' && *text_ <= '9' && text_ - start < 4; ++text_) {
      value = value * 10 + static_cast<unsigned>(*text_ - '0');
    }
    return text_ != start && value == expected;
  }

 private:
  const char* text_;
};

/// Writes a key as far as there is room.
class KeyWriter {
 public:
  KeyWriter(char* to, size_t room) : to_(to), room_(room) {}

  bool put(char c) {
    if (room_ == 0) return false;
    *to_++ = c;
    --room_;
    return true;
  }

  bool put_number(int value) {
    if (value < 0 || value > 99) return false;
    return (value < 10 || put(static_cast<char>('0' + value / 10))) &&
           put(static_cast<char>('0' + value % 10));
  }

  bool put_tensor(const TensorMeta& meta) {
    if (!put_number(static_cast<int>(meta.dtype_)) || !put(';')) return false;
    for (size_t d = 0; d < meta.dim_order_.size(); ++d) {
      if ((d > 0 && !put(',')) || !put_number(meta.dim_order_[d])) return false;
    }
    return true;
  }

 private:
  char* to_;
  size_t room_;
};

bool key_matches(const char* key, Span<const TensorMeta> meta_list) {
  const size_t n = meta_list.size();
  KeyCursor cursor(key);
  if (!cursor.accept('v') || !cursor.accept('1') || !cursor.accept('/')) return false;
  for (size_t i = 0; i < n; ++i) {
    const TensorMeta& meta = meta_list[i];
    // Programs repeat the out tensor at the end; keys need not.
    if (i > 0 && i == n - 1 && meta == meta_list[i - 1] && cursor.accept('\0')) return true;
    if ((i > 0 && !cursor.accept('|')) ||
        !cursor.accept_number(static_cast<unsigned>(meta.dtype_)) || !cursor.accept(';')) {
      return false;
    }
    for (size_t d = 0; d < meta.dim_order_.size(); ++d) {
      if ((d > 0 && !cursor.accept(',')) || !cursor.accept_number(meta.dim_order_[d])) return false;
    }
  }
  return cursor.accept('\0');
}

/// The row for exactly these tensors, else the fallback, else null.
const Kernel* find(const char* name, Span<const TensorMeta> meta_list, Span<const Kernel> kernels) {
  const Kernel* fallback = nullptr;
  if (name == nullptr) return nullptr;
  for (const Kernel& kernel : kernels) {
    if (kernel.name_ == nullptr || kernel.op_ == nullptr || std::strcmp(kernel.name_, name) != 0) {
      continue;
    }
    if (kernel.kernel_key_.is_fallback()) {
      fallback = fallback == nullptr ? &kernel : fallback;
    } else if (key_matches(kernel.kernel_key_.data(), meta_list)) {
      return &kernel;
    }
  }
  return fallback;
}

const char* origin_of(const Kernel& kernel) {
  return kernel.origin_ == nullptr ? "(unnamed)" : kernel.origin_;
}

}  // namespace

Error internal::make_kernel_key_string(Span<const TensorMeta> key, char* buf, size_t buf_size) {
  KeyWriter writer(buf, buf_size);
  if (key.empty()) {
    writer.put('\0');
    return Error::Ok;
  }
  bool fits = writer.put('v') && writer.put('1');
  for (size_t i = 0; i < key.size() && fits; ++i) {
    fits = writer.put(i == 0 ? '/' : '|') && writer.put_tensor(key[i]);
  }
  ET_CHECK_OR_RETURN_ERROR(fits && writer.put('\0'), InvalidArgument,
                           "kernel key: %zu tensors do not fit into %zu bytes, or one has a type "
                           "or dimension of more than two digits",
                           key.size(), buf_size);
  return Error::Ok;
}

bool registry_has_op_function(const char* name, Span<const TensorMeta> meta_list) {
  return find(name, meta_list, get_registered_kernels()) != nullptr;
}

Result<OpFunction> get_op_function_from_registry(const char* name,
                                                 Span<const TensorMeta> meta_list) {
  return get_op_function_from_registry(name, meta_list, get_registered_kernels());
}

Result<OpFunction> get_op_function_from_registry(const char* name, Span<const TensorMeta> meta_list,
                                                 Span<const Kernel> kernel_list) {
  const Kernel* kernel = find(name, meta_list, kernel_list);
  if (kernel == nullptr) return Error::OperatorMissing;
  return kernel->op_;
}

Span<const Kernel> get_registered_kernels() {
  return {table, n_kernels};
}

Error register_kernel(const Kernel& kernel) {
  ET_CHECK_OR_RETURN_ERROR(kernel.name_ != nullptr && kernel.op_ != nullptr, InvalidArgument,
                           "register_kernel: a row without name or function");
  for (const Kernel& present : get_registered_kernels()) {
    if (std::strcmp(present.name_, kernel.name_) != 0 ||
        present.kernel_key_ != kernel.kernel_key_) {
      continue;
    }
    if (present.op_ == kernel.op_ || (present.origin_ != nullptr && kernel.origin_ != nullptr &&
                                      std::strcmp(present.origin_, kernel.origin_) == 0)) {
      return Error::Ok;
    }
    ET_LOG(Error, "register_kernel: %s (key %s) of %s is refused; %s registered it before",
           kernel.name_, kernel.kernel_key_.is_fallback() ? "none" : kernel.kernel_key_.data(),
           origin_of(kernel), origin_of(present));
    return Error::RegistrationAlreadyRegistered;
  }
  ET_CHECK_OR_RETURN_ERROR(n_kernels < MAX_KERNEL_NUM, RegistrationExceedingMaxKernels,
                           "register_kernel: no room for %s; MAX_KERNEL_NUM is %d", kernel.name_,
                           MAX_KERNEL_NUM);
  table[n_kernels++] = kernel;
  return Error::Ok;
}

Error register_kernels(const Span<const Kernel> kernels, const char* origin) {
  Error first_error = Error::Ok;
  for (Kernel kernel : kernels) {
    kernel.origin_ = kernel.origin_ == nullptr ? origin : kernel.origin_;
    const Error error = register_kernel(kernel);
    first_error = first_error == Error::Ok ? error : first_error;
  }
  return first_error;
}

}  // namespace executorch::ET_RUNTIME_NAMESPACE
