#pragma once

#include <executorch/extension/llm/server/served_model.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>

namespace executorch::extension::llm::server {

/// Sessions of a model that share one copy of its weights. Requests get one in the order in which
/// they asked: the free session whose text has the longest common beginning with the prompt. So a
/// conversation finds the session that already computed its earlier messages.
class SessionPool {
 public:
  /// Makes up to `n_sessions` sessions as they are needed. Up to `n_waiting` requests may wait for
  /// one.
  SessionPool(ServedModel& model, size_t n_sessions, size_t n_waiting);

  /// A session that one request uses until the lease is destroyed.
  class Lease {
   public:
    Lease(Lease&& other) noexcept : pool_(other.pool_), text_(other.text_) {
      other.pool_ = nullptr;
    }
    Lease& operator=(Lease&&) = delete;
    ~Lease();
    ServedText& operator*() const { return *text_; }
    ServedText* operator->() const { return text_; }

   private:
    friend class SessionPool;
    Lease(SessionPool* pool, ServedText* text) : pool_(pool), text_(text) {}
    SessionPool* pool_;
    ServedText* text_;
  };

  /// Why no session was given: too many requests wait (Busy); the deadline passed (TimedOut);
  /// `cancelled`, which is called now and then and must not throw, returned true, or the pool was
  /// stopped (Cancelled); a session could not be created (Failed). What the model throws while it
  /// creates one is thrown on.
  enum class Refusal { Busy, TimedOut, Cancelled, Failed };
  struct Answer {
    std::unique_ptr<Lease> lease;
    Refusal refusal = Refusal::Failed;
  };
  Answer take(const std::vector<uint64_t>& prompt, std::chrono::steady_clock::time_point deadline,
              const std::function<bool()>& cancelled);

  /// Ends all generations, and refuses requests that wait or come later.
  void stop();

  bool is_stopped() const;
  size_t n_sessions() const;
  size_t n_busy() const;
  size_t n_waiting() const;

 private:
  struct Session {
    std::unique_ptr<ServedText> text;
    bool busy = false;
    uint64_t last_use = 0;
  };

  void give_back(ServedText* text);
  bool may_take() const;
  /// The session to use for `prompt`, possibly a new one. Null if none could be created.
  Session* choose(const std::vector<uint64_t>& prompt);

  ServedModel& model_;
  const size_t max_sessions_, max_waiting_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Session> sessions_;
  std::list<uint64_t> waiting_;  // tickets, first come first
  uint64_t n_tickets_ = 0, n_uses_ = 0;
  bool stopped_ = false;
};

}  // namespace executorch::extension::llm::server
