#include <executorch/extension/llm/server/session_pool.h>

#include <algorithm>

namespace executorch::extension::llm::server {
namespace {

size_t common_prefix(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                             a.begin());
}

}  // namespace

SessionPool::SessionPool(ServedModel& model, size_t n_sessions, size_t n_waiting)
    : model_(model), max_sessions_(n_sessions), max_waiting_(n_waiting) {}

SessionPool::Lease::~Lease() {
  if (pool_ != nullptr) pool_->give_back(text_);
}

bool SessionPool::may_take() const {
  const auto busy = [](const Session& session) { return session.busy; };
  return sessions_.size() < max_sessions_ || !std::all_of(sessions_.begin(), sessions_.end(), busy);
}

SessionPool::Answer SessionPool::take(const std::vector<uint64_t>& prompt,
                                      std::chrono::steady_clock::time_point deadline,
                                      const std::function<bool()>& cancelled) {
  constexpr auto kAskAgain = std::chrono::milliseconds(50);
  std::unique_lock<std::mutex> lock(mutex_);
  if (waiting_.size() >= max_waiting_ && !(waiting_.empty() && may_take())) {
    return {nullptr, Refusal::Busy};
  }
  const uint64_t ticket = n_tickets_++;
  struct Place {  // given up by exceptions as well: others wait behind it
    SessionPool& pool;
    std::list<uint64_t>::iterator at;
    ~Place() {
      pool.waiting_.erase(at);
      pool.changed_.notify_all();
    }
  } const place{*this, waiting_.insert(waiting_.end(), ticket)};
  const auto refused = [](Refusal refusal) { return Answer{nullptr, refusal}; };
  while (waiting_.front() != ticket || !may_take()) {
    if (stopped_) return refused(Refusal::Cancelled);
    if (std::chrono::steady_clock::now() >= deadline) return refused(Refusal::TimedOut);
    changed_.wait_for(lock, kAskAgain);
    lock.unlock();
    const bool gone = cancelled();
    lock.lock();
    if (gone) return refused(Refusal::Cancelled);
  }
  if (stopped_) return refused(Refusal::Cancelled);
  Session* const session = choose(prompt);
  if (session == nullptr) return refused(Refusal::Failed);
  std::unique_ptr<Lease> lease(new Lease(this, session->text.get()));
  session->busy = true;
  session->last_use = ++n_uses_;
  return {std::move(lease), Refusal::Failed};
}

SessionPool::Session* SessionPool::choose(const std::vector<uint64_t>& prompt) {
  Session* best = nullptr;
  size_t best_prefix = 0;
  for (Session& session : sessions_) {
    if (session.busy) continue;
    const size_t prefix = common_prefix(session.text->tokens(), prompt);
    const bool older = best != nullptr && session.last_use < best->last_use;
    if (best == nullptr || prefix > best_prefix || (prefix == best_prefix && older)) {
      best = &session;
      best_prefix = prefix;
    }
  }
  // Do not overwrite another conversation while a new session may be created. If less than half of
  // a session's text is a beginning of the prompt, it is taken for another conversation with the
  // same system prompt.
  const bool continues = best != nullptr && 2 * best_prefix >= best->text->tokens().size();
  if (continues || sessions_.size() >= max_sessions_) return best;
  auto text = model_.create_text();
  if (!text.ok()) return best;
  return &sessions_.emplace_back(Session{std::move(*text), false, 0});
}

void SessionPool::give_back(ServedText* text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Session& session : sessions_) {
    if (session.text.get() == text) session.busy = false;
  }
  changed_.notify_all();
}

void SessionPool::stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stopped_ = true;
  for (Session& session : sessions_) {
    if (session.busy) session.text->stop();
  }
  changed_.notify_all();
}

bool SessionPool::is_stopped() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stopped_;
}

size_t SessionPool::n_sessions() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return sessions_.size();
}

size_t SessionPool::n_busy() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<size_t>(std::count_if(sessions_.begin(), sessions_.end(),
                                           [](const Session& session) { return session.busy; }));
}

size_t SessionPool::n_waiting() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return waiting_.size();
}

}  // namespace executorch::extension::llm::server
