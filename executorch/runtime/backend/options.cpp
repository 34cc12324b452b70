#include <executorch/runtime/backend/options.h>

#include <cstring>

namespace executorch::runtime::internal {
namespace {

template <typename Stored>
Error find_value(const BackendOption* option, const Stored*& out) {
  if (option == nullptr) return Error::NotFound;
  out = std::get_if<Stored>(&option->value);
  ET_CHECK_OR_RETURN_ERROR(out != nullptr, InvalidArgument,
                           "backend option %s holds a value of another type (%zu)", option->key,
                           option->value.index());
  return Error::Ok;
}

template <typename T>
Error read_plain(const BackendOption* option, T& out) {
  const T* value = nullptr;
  const Error error = find_value(option, value);
  if (error == Error::Ok) out = *value;
  return error;
}

}  // namespace

const BackendOption* find_option(Span<const BackendOption> options, const char* key) {
  for (const BackendOption& option : options) {
    if (std::strncmp(option.key, key, kMaxOptionKeyLength) == 0) return &option;
  }
  return nullptr;
}

Error read_option(const BackendOption* option, bool& out) {
  return read_plain(option, out);
}

Error read_option(const BackendOption* option, int& out) {
  return read_plain(option, out);
}

Error read_option(const BackendOption* option, const char*& out) {
  const std::array<char, kMaxOptionValueLength>* text = nullptr;
  const Error error = find_value(option, text);
  if (error == Error::Ok) out = text->data();
  return error;
}

Error store_option(Span<BackendOption> options, size_t& size, const char* key,
                   const OptionValue& value) {
  auto* option = const_cast<BackendOption*>(find_option({options.data(), size}, key));
  if (option == nullptr) {
    const size_t bytes = std::strlen(key) + 1;
    ET_CHECK_OR_RETURN_ERROR(bytes <= kMaxOptionKeyLength, InvalidArgument,
                             "backend option %s: a key has at most %zu bytes", key,
                             kMaxOptionKeyLength - 1);
    ET_CHECK_OR_RETURN_ERROR(size < options.size(), InvalidArgument,
                             "backend option %s: no room beside %zu others", key, size);
    option = &options[size++];
    std::memcpy(option->key, key, bytes);
  }
  option->value = value;
  return Error::Ok;
}

Error store_option(Span<BackendOption> options, size_t& size, const char* key, const char* value) {
  ET_CHECK_OR_RETURN_ERROR(value != nullptr, InvalidArgument,
                           "backend option %s: the string is null", key);
  const size_t bytes = std::strlen(value) + 1;
  ET_CHECK_OR_RETURN_ERROR(bytes <= kMaxOptionValueLength, InvalidArgument,
                           "backend option %s: a string has at most %zu bytes, this one %zu", key,
                           kMaxOptionValueLength - 1, bytes - 1);
  std::array<char, kMaxOptionValueLength> text{};
  std::memcpy(text.data(), value, bytes);
  return store_option(options, size, key, OptionValue(text));
}

}  // namespace executorch::runtime::internal
