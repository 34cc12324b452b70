/// How a runner and a delegate come to share a cache: the runner builds one, by the backend's
/// function for it, installs it under a key, and gives the key to the delegate as an option of
/// loading. Any thread may call these.
#pragma once

#include <executorch/extension/llm/cache/cache.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/result.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

namespace executorch::extension::llm::cache {

using runtime::Error;
using runtime::Result;

/// The process's caches by key. Whoever has got one keeps it alive, also when it is erased here.
class CacheRegistry {
 public:
  static CacheRegistry& global();

  /// Takes the place of what was there.
  void install(const std::string& key, std::shared_ptr<CacheBase> cache);
  /// Null if there is none.
  std::shared_ptr<CacheBase> get(const std::string& key) const;
  void erase(const std::string& key);

 private:
  CacheRegistry() = default;

  mutable std::mutex turn_;
  std::unordered_map<std::string, std::shared_ptr<CacheBase>> caches_;
};

using CacheBuilder = std::function<std::shared_ptr<CacheBase>(const CacheConfig&)>;

/// The process's functions that make caches, by backend and kind.
class CacheBuilderRegistry {
 public:
  static CacheBuilderRegistry& global();

  /// Takes the place of what was there.
  void register_builder(const std::string& backend_id, const std::string& kind,
                        CacheBuilder builder);
  /// Error::NotFound if no function was registered, InvalidArgument if it made nothing.
  Result<std::shared_ptr<CacheBase>> build(const std::string& backend_id, const std::string& kind,
                                           const CacheConfig& cfg) const;

 private:
  CacheBuilderRegistry() = default;

  mutable std::mutex turn_;
  std::unordered_map<std::string, CacheBuilder> builders_;
};

/// A key that no other call gives.
std::string make_unique_key();

/// A cache that is installed as long as this lives.
class CacheSession {
 public:
  CacheSession(std::string key, std::shared_ptr<CacheBase> cache)
      : key_(std::move(key)), cache_(std::move(cache)) {
    CacheRegistry::global().install(key_, cache_);
  }
  ~CacheSession() { CacheRegistry::global().erase(key_); }
  CacheSession(const CacheSession&) = delete;
  CacheSession& operator=(const CacheSession&) = delete;

  /// Null if the cache is, or has no such face.
  SequenceControl* control() const { return cache_ != nullptr ? cache_->as_control() : nullptr; }
  const std::string& key() const { return key_; }

 private:
  std::string key_;
  std::shared_ptr<CacheBase> cache_;
};

}  // namespace executorch::extension::llm::cache
