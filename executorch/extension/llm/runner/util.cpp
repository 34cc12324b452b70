#include <executorch/extension/llm/runner/util.h>
#include <executorch/extension/llm/tokenizers/utf8.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdio>

#if defined(__linux__)
#include <unistd.h>
#elif defined(__APPLE__)
#include <mach/mach.h>
#endif

namespace executorch::extension::llm {

using runtime::Error;
using runtime::Result;
namespace utf8 = ::tokenizers::utf8;

void safe_printf(const char* piece) {
  if (piece == nullptr || piece[0] == '\0') return;
  const auto only = static_cast<unsigned char>(piece[0]);
  if (piece[1] == '\0' && !std::isprint(only) && !std::isspace(only)) return;
  std::fputs(piece, stdout);
}

size_t utf8_complete_prefix_len(const std::string& s) {
  return s.size() - utf8::incomplete_tail(s);
}

size_t utf8_safe_prefix_len(const std::string& s, size_t len) {
  if (len >= s.size()) return utf8_complete_prefix_len(s);
  return utf8_complete_prefix_len(s.substr(0, len));
}

size_t stop_safe_prefix_len(const std::string& text, const std::vector<std::string>& stops,
                            bool& stop_hit) {
  size_t first = text.size();
  stop_hit = false;
  for (const std::string& stop : stops) {
    const size_t at = stop.empty() ? std::string::npos : text.find(stop);
    if (at == std::string::npos) continue;
    stop_hit = true;
    first = std::min(first, at);
  }
  if (stop_hit) return first;
  for (const std::string& stop : stops) {
    for (size_t n = std::min(stop.size(), text.size()); n > 0; --n) {
      if (text.compare(text.size() - n, n, stop, 0, n) == 0) {
        first = std::min(first, text.size() - n);
        break;
      }
    }
  }
  return utf8_safe_prefix_len(text, first);
}

Error check_temperature(float temperature) {
  if (std::isfinite(temperature) && temperature >= 0) return Error::Ok;
  ET_LOG(Error, "the temperature is %f; expected 0 or more", static_cast<double>(temperature));
  return Error::InvalidArgument;
}

long time_in_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<long>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

size_t get_rss_bytes() {
#if defined(__linux__)
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  unsigned long long total = 0, resident = 0;
  const int found = std::fscanf(file, "%llu %llu", &total, &resident);
  std::fclose(file);
  return found == 2 ? static_cast<size_t>(resident) * static_cast<size_t>(sysconf(_SC_PAGESIZE))
                    : 0;
#elif defined(__APPLE__)
  mach_task_basic_info info;
  mach_msg_type_number_t count = MACH_TASK_BASIC_INFO_COUNT;
  const auto result = task_info(mach_task_self(), MACH_TASK_BASIC_INFO,
                                reinterpret_cast<task_info_t>(&info), &count);
  return result == KERN_SUCCESS ? info.resident_size : 0;
#else
  return 0;
#endif
}

Result<TensorPtr> populate_start_pos_or_cache_position(Module* module, int64_t& start_pos,
                                                       std::vector<int64_t>& cache_positions_vec,
                                                       int seq_len, const char* method_name) {
  ET_CHECK_OR_RETURN_ERROR(module != nullptr && method_name != nullptr, InvalidArgument,
                           "positions: there is no module, or no name of a method");
  ET_ASSIGN_OR_RETURN(const auto meta, module->method_meta(method_name));
  const auto input = meta.input_tensor_meta(1);
  ET_CHECK_OR_RETURN_ERROR(input.ok(), InvalidArgument,
                           "method '%s' has no tensor as its second input, for positions",
                           method_name);
  const auto sizes = input->sizes();
  const bool is_one = std::all_of(sizes.begin(), sizes.end(), [](int32_t n) { return n == 1; });
  if (is_one) return TensorPtr(from_blob(&start_pos, {1}, aten::ScalarType::Long));
  ET_CHECK_OR_RETURN_ERROR(
      seq_len >= 0 && start_pos >= 0 && start_pos <= INT64_MAX - seq_len, InvalidArgument,
      "positions: found %d tokens from position %lld on; expected neither below 0", seq_len,
      static_cast<long long>(start_pos));
  cache_positions_vec.resize(static_cast<size_t>(seq_len));
  for (int i = 0; i < seq_len; ++i) cache_positions_vec[static_cast<size_t>(i)] = start_pos + i;
  return TensorPtr(from_blob(cache_positions_vec.data(), {seq_len}, aten::ScalarType::Long));
}

Result<TensorPtr> convert_to_bfloat16(const TensorPtr& src_tensor) {
  ET_CHECK_OR_RETURN_ERROR(
      src_tensor != nullptr && src_tensor->scalar_type() == aten::ScalarType::Float,
      InvalidArgument, "convert_to_bfloat16: the tensor is not of float");
  const float* const values = src_tensor->const_data_ptr<float>();
  std::vector<aten::BFloat16> converted(static_cast<size_t>(src_tensor->numel()));
  for (size_t i = 0; i < converted.size(); ++i) converted[i] = aten::BFloat16(values[i]);
  const auto sizes = src_tensor->sizes();
  return make_tensor_ptr(std::vector<aten::SizesType>(sizes.begin(), sizes.end()),
                         std::move(converted));
}

}  // namespace executorch::extension::llm
