#include <executorch/extension/llm/sampler/util.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/platform/log.h>

#include <cstring>
#include <limits>
#include <new>

namespace executorch::extension::llm {
namespace {

using aten::ScalarType;
using aten::Tensor;
using runtime::Error;

/// The first element of a row of the last dimension; -1: the last row. Null: there is none.
const void* row_of(const Tensor& logits, int64_t row) {
  if (count_rows(logits) == 0 || logits.const_data_ptr() == nullptr) {
    ET_LOG(Error, "logits: the tensor is empty");
    return nullptr;
  }
  const int64_t n = logits.size(logits.dim() - 1);
  const int64_t n_rows = count_rows(logits);
  if (row == -1) row = n_rows - 1;
  if (row < 0 || row >= n_rows) {
    ET_LOG(Error, "logits: there are %lld rows, and row %lld is asked for",
           static_cast<long long>(n_rows), static_cast<long long>(row));
    return nullptr;
  }
  return static_cast<const char*>(logits.const_data_ptr()) + row * n * logits.element_size();
}

template <class T>
void convert(const void* from, std::vector<float>& out) {
  const T* const values = static_cast<const T*>(from);
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(values[i]);
}

}  // namespace

int64_t count_rows(const Tensor& logits) {
  if (logits.dim() == 0 || logits.numel() == 0) return 0;
  return logits.numel() / logits.size(logits.dim() - 1);
}

Error read_logits(const Tensor& logits, int64_t row, std::vector<float>& out) {
  const void* const values = row_of(logits, row);
  if (values == nullptr) return Error::InvalidArgument;
  try {
    out.resize(static_cast<size_t>(logits.size(logits.dim() - 1)));
  } catch (const std::bad_alloc&) {
    return Error::MemoryAllocationFailed;
  }
  switch (logits.scalar_type()) {
    case ScalarType::Float:
      std::memcpy(out.data(), values, out.size() * sizeof(float));
      return Error::Ok;
    case ScalarType::Double:
      convert<double>(values, out);
      return Error::Ok;
    case ScalarType::Half:
      convert<aten::Half>(values, out);
      return Error::Ok;
    case ScalarType::BFloat16:
      convert<aten::BFloat16>(values, out);
      return Error::Ok;
    default:
      ET_LOG(Error, "logits: found %s, expected Float, Double, Half or BFloat16",
             runtime::toString(logits.scalar_type()));
      return Error::InvalidArgument;
  }
}

int32_t sample_from_logits(const Tensor& logits_tensor, Sampler& sampler) {
  void* const values = const_cast<void*>(row_of(logits_tensor, -1));
  if (values == nullptr) return -1;
  const auto n = static_cast<int64_t>(logits_tensor.size(logits_tensor.dim() - 1));
  if (sampler.vocab_size() > n) {
    ET_LOG(Error, "logits: there are %lld for a token, and the sampler chooses among %d tokens",
           static_cast<long long>(n), static_cast<int>(sampler.vocab_size()));
    return -1;
  }
  switch (logits_tensor.scalar_type()) {
    case ScalarType::Float:
      return sampler.sample(static_cast<float*>(values));
    case ScalarType::Half:
      return sampler.sample(static_cast<aten::Half*>(values));
    case ScalarType::BFloat16:
      return sampler.sample(static_cast<aten::BFloat16*>(values));
    case ScalarType::UInt16:
      return sampler.sample(static_cast<uint16_t*>(values));
    default:
      ET_LOG(Error, "logits: found %s, expected Float, Half, BFloat16 or UInt16",
             runtime::toString(logits_tensor.scalar_type()));
      return -1;
  }
}

int32_t logits_to_token(const Tensor& logits_tensor, const float temperature) {
  if (logits_tensor.dim() == 0 ||
      logits_tensor.size(logits_tensor.dim() - 1) > std::numeric_limits<int32_t>::max()) {
    ET_LOG(Error, "logits: the tensor has no vocabulary");
    return -1;
  }
  Sampler sampler(static_cast<int32_t>(logits_tensor.size(logits_tensor.dim() - 1)), temperature);
  return sample_from_logits(logits_tensor, sampler);
}

bool Sampler::make_room() {
  try {
    logits_.resize(static_cast<size_t>(vocab_size_));
    return true;
  } catch (const std::bad_alloc&) {
    ET_LOG(Error, "Sampler: no memory for %d logits", static_cast<int>(vocab_size_));
    return false;
  }
}

}  // namespace executorch::extension::llm
