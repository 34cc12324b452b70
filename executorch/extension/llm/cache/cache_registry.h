/// Lets a runner and a delegate share a cache: the runner creates one by the function that the
/// backend registered, installs it under a key, and passes the key to the delegate as a load-time
/// option. All functions are thread-safe.
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

/// The caches of the process by key. Users of a cache keep it alive after it is erased here.
class CacheRegistry {
 public:
  static CacheRegistry& global();

  /// Replaces an earlier one.
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

/// The functions that create caches, by backend and kind.
class CacheBuilderRegistry {
 public:
  static CacheBuilderRegistry& global();

  /// Replaces an earlier one.
  void register_builder(const std::string& backend_id, const std::string& kind,
                        CacheBuilder builder);
  /// Error::NotFound if no function was registered, InvalidArgument if the function returned null.
  Result<std::shared_ptr<CacheBase>> build(const std::string& backend_id, const std::string& kind,
                                           const CacheConfig& cfg) const;

 private:
  CacheBuilderRegistry() = default;

  mutable std::mutex turn_;
  std::unordered_map<std::string, CacheBuilder> builders_;
};

/// A key that no other call returns.
std::string make_unique_key();

/// Keeps a cache installed as long as this object lives.
class CacheSession {
 public:
  CacheSession(std::string key, std::shared_ptr<CacheBase> cache)
      : key_(std::move(key)), cache_(std::move(cache)) {
    CacheRegistry::global().install(key_, cache_);
  }
  ~CacheSession() { CacheRegistry::global().erase(key_); }
  CacheSession(const CacheSession&) = delete;
  CacheSession& operator=(const CacheSession&) = delete;

  /// The cache's interface for the runner; null if there is no cache, or it has none.
  SequenceControl* control() const { return cache_ != nullptr ? cache_->as_control() : nullptr; }
  const std::string& key() const { return key_; }

 private:
  std::string key_;
  std::shared_ptr<CacheBase> cache_;
};

}  // namespace executorch::extension::llm::cache
