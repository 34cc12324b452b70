#include <executorch/extension/llm/cache/cache_registry.h>
#include <executorch/runtime/platform/log.h>

#include <atomic>

namespace executorch::extension::llm::cache {
namespace {

std::string name_of(const std::string& backend_id, const std::string& kind) {
  return backend_id + ":" + kind;
}

}  // namespace

CacheRegistry& CacheRegistry::global() {
  static CacheRegistry registry;
  return registry;
}

void CacheRegistry::install(const std::string& key, std::shared_ptr<CacheBase> cache) {
  const std::lock_guard<std::mutex> lock(turn_);
  caches_[key].swap(cache);  // what was there ends after the lock
}

std::shared_ptr<CacheBase> CacheRegistry::get(const std::string& key) const {
  const std::lock_guard<std::mutex> lock(turn_);
  const auto found = caches_.find(key);
  return found == caches_.end() ? nullptr : found->second;
}

void CacheRegistry::erase(const std::string& key) {
  std::shared_ptr<CacheBase> last;
  const std::lock_guard<std::mutex> lock(turn_);
  const auto found = caches_.find(key);
  if (found == caches_.end()) return;
  last.swap(found->second);
  caches_.erase(found);
}

CacheBuilderRegistry& CacheBuilderRegistry::global() {
  static CacheBuilderRegistry registry;
  return registry;
}

void CacheBuilderRegistry::register_builder(const std::string& backend_id, const std::string& kind,
                                            CacheBuilder builder) {
  const std::lock_guard<std::mutex> lock(turn_);
  builders_[name_of(backend_id, kind)] = std::move(builder);
}

Result<std::shared_ptr<CacheBase>> CacheBuilderRegistry::build(const std::string& backend_id,
                                                               const std::string& kind,
                                                               const CacheConfig& cfg) const {
  CacheBuilder builder;
  {
    const std::lock_guard<std::mutex> lock(turn_);
    const auto found = builders_.find(name_of(backend_id, kind));
    if (found != builders_.end()) builder = found->second;
  }
  ET_CHECK_OR_RETURN_ERROR(builder, NotFound, "cache: backend %s has no builder of kind %s",
                           backend_id.c_str(), kind.c_str());
  std::shared_ptr<CacheBase> cache = builder(cfg);
  ET_CHECK_OR_RETURN_ERROR(cache != nullptr, InvalidArgument,
                           "cache: backend %s made no cache of kind %s", backend_id.c_str(),
                           kind.c_str());
  return cache;
}

std::string make_unique_key() {
  static std::atomic<uint64_t> next{0};
  return "cache-" + std::to_string(next.fetch_add(1));
}

}  // namespace executorch::extension::llm::cache
