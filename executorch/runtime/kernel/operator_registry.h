/// The table of kernels: maps an operator's name to the function that computes it. A kernel can
/// also be registered for certain element types and dim orders of the tensor arguments only.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

#include <executorch/runtime/core/array_ref.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>
#include <executorch/runtime/kernel/kernel_runtime_context.h>

/// Logs a kernel key, and a list of tensor metadata, at Error.
#define ET_LOG_KERNEL_KEY(k) ET_LOG(Error, "key: %s", (k).is_fallback() ? "(fallback)" : (k).data())
#define ET_LOG_TENSOR_META(meta_list)                                                            \
  for (const auto& et_meta__ : (meta_list)) {                                                    \
    ET_LOG(Error, "dtype: %d | dim order of %zu dimensions", static_cast<int>(et_meta__.dtype_), \
           et_meta__.dim_order_.size());                                                         \
  }

namespace executorch::ET_RUNTIME_NAMESPACE {

/// A kernel as the executor calls it. `args` are the operator's arguments in schema order with
/// the outputs; failure is reported through the context.
using OpFunction = void (*)(KernelRuntimeContext&, Span<EValue*>);

/// The properties of a tensor argument by which a kernel may be selected.
struct TensorMeta {
  aten::ScalarType dtype_;
  /// Borrowed.
  Span<aten::DimOrderType> dim_order_;

  TensorMeta() = default;
  TensorMeta(aten::ScalarType dtype, Span<aten::DimOrderType> order)
      : dtype_(dtype), dim_order_(order) {}

  bool operator==(const TensorMeta& other) const { return equals(other); }
  bool operator!=(const TensorMeta& other) const { return !equals(other); }
  bool equals(const TensorMeta& other) const {
    return dtype_ == other.dtype_ && dim_order_.size() == other.dim_order_.size() &&
           (dim_order_.empty() ||
            std::memcmp(dim_order_.data(), other.dim_order_.data(), dim_order_.size()) == 0);
  }
};

/// "v1/<dtype>;<dim>,<dim>...|<dtype>;...": for each tensor argument the number of its element
/// type and its dim order; None and lists have no part, an out tensor has one although programs
/// pass it twice. Without data: a fallback, for any tensors.
struct KernelKey {
 public:
  constexpr KernelKey() = default;
  /// Borrowed.
  constexpr KernelKey(const char* kernel_key_data) : kernel_key_data_(kernel_key_data) {}

  bool operator==(const KernelKey& other) const { return equals(other); }
  bool operator!=(const KernelKey& other) const { return !equals(other); }
  bool equals(const KernelKey& other) const {
    return is_fallback() == other.is_fallback() &&
           (is_fallback() || std::strcmp(kernel_key_data_, other.kernel_key_data_) == 0);
  }
  bool is_fallback() const { return kernel_key_data_ == nullptr; }
  const char* data() const { return kernel_key_data_; }

 private:
  const char* kernel_key_data_ = nullptr;
};

/// A row of the table.
struct Kernel {
  /// "namespace::operator.overload", borrowed.
  const char* name_ = nullptr;
  KernelKey kernel_key_;
  OpFunction op_ = nullptr;
  /// Who registers it, for messages: a library, or a file and line. Borrowed; may be null.
  const char* origin_ = nullptr;

  constexpr Kernel() = default;
  constexpr explicit Kernel(const char* name, OpFunction func) : name_(name), op_(func) {}
  constexpr explicit Kernel(const char* name, KernelKey key, OpFunction func,
                            const char* origin = nullptr)
      : name_(name), kernel_key_(key), op_(func), origin_(origin) {}

  /// From a captureless lambda of releases before 1.0, which takes the arguments as EValue**.
  template <typename Legacy,
            std::enable_if_t<std::is_empty_v<Legacy> &&
                                 std::is_invocable_v<Legacy, KernelRuntimeContext&, EValue**> &&
                                 !std::is_convertible_v<Legacy, OpFunction>,
                             bool> = true>
  explicit Kernel(const char* name, Legacy) : Kernel(name, &call_legacy<Legacy>) {}

 private:
  template <typename Legacy>
  static void call_legacy(KernelRuntimeContext& context, Span<EValue*> args) {
    // The lambda has no state, so that any address serves as its own.
    const char stateless = 0;
    reinterpret_cast<const Legacy&>(stateless)(context, args.data());
  }
};

namespace internal {

/// Room for the key of 16 tensors of 16 dimensions, and its zero byte.
constexpr size_t kKernelKeyBufSize = 659;

/// Writes the key of exactly these tensors and a zero byte; "" for none. InvalidArgument if it does
/// not fit, or a type or dimension has more than two digits; nothing useful is in `buf` then.
Error make_kernel_key_string(Span<const TensorMeta> key, char* buf, size_t buf_size);

}  // namespace internal

/// Whether get_op_function_from_registry() finds a kernel.
bool registry_has_op_function(const char* name, Span<const TensorMeta> meta_list = {});

/// The kernel registered for exactly these tensors, else the operator's fallback, else
/// OperatorMissing, which is for the caller to report.
runtime::Result<OpFunction> get_op_function_from_registry(const char* name,
                                                          Span<const TensorMeta> meta_list = {});
/// The same in another table.
runtime::Result<OpFunction> get_op_function_from_registry(const char* name,
                                                          Span<const TensorMeta> meta_list,
                                                          Span<const Kernel> kernel_list);

/// All rows in order of registration. Valid while the program runs; registering appends.
Span<const Kernel> get_registered_kernels();

/// Copies rows into the table, which has room for MAX_KERNEL_NUM (by default 2000). The strings
/// must live as long as the program. A row that is there already, by its function or by its origin,
/// is Ok. Another function for the same name and key is RegistrationAlreadyRegistered: both origins
/// are logged, the first one stays, and the rows after it are still registered.
/// RegistrationExceedingMaxKernels when the table is full. Not thread-safe; meant for start-up.
/// `origin` is given to rows that have none.
Error register_kernels(const Span<const Kernel>, const char* origin = nullptr);
Error register_kernel(const Kernel& kernel);

}  // namespace executorch::ET_RUNTIME_NAMESPACE

namespace torch::executor {
using ::executorch::ET_RUNTIME_NAMESPACE::Kernel;
using ::executorch::ET_RUNTIME_NAMESPACE::KernelKey;
using ::executorch::ET_RUNTIME_NAMESPACE::OpFunction;
using ::executorch::ET_RUNTIME_NAMESPACE::TensorMeta;
using KernelRuntimeContext = ::executorch::ET_RUNTIME_NAMESPACE::KernelRuntimeContext;

inline ::executorch::runtime::Error register_kernels(ArrayRef<Kernel> kernels) {
  return ::executorch::ET_RUNTIME_NAMESPACE::register_kernels({kernels.data(), kernels.size()});
}

/// Aborts when there is none.
inline OpFunction getOpsFn(const char* name, ArrayRef<TensorMeta> meta_list = {}) {
  const auto function = ::executorch::ET_RUNTIME_NAMESPACE::get_op_function_from_registry(
      name, {meta_list.data(), meta_list.size()});
  ET_CHECK_MSG(function.ok(), "no kernel is registered for %s", name);
  return *function;
}

inline bool hasOpsFn(const char* name, ArrayRef<TensorMeta> meta_list = {}) {
  return ::executorch::ET_RUNTIME_NAMESPACE::registry_has_op_function(
      name, {meta_list.data(), meta_list.size()});
}

inline ArrayRef<Kernel> get_kernels() {
  const auto kernels = ::executorch::ET_RUNTIME_NAMESPACE::get_registered_kernels();
  return {kernels.data(), kernels.size()};
}

}  // namespace torch::executor
