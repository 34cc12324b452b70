#pragma once

#include <executorch/extension/llm/server/served_model.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>

namespace executorch::extension::llm::server {

/// Texts over one copy of the weights. Who asks for one gets, in the order of asking, the free one
/// that has most of the prompt already; a conversation so finds what it said before.
class SessionPool {
 public:
  /// At most `n_sessions` texts, made when they are needed, and `n_waiting` that wait for one.
  SessionPool(ServedModel& model, size_t n_sessions, size_t n_waiting);

  /// A text until it goes out of scope.
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

  /// Error: OutOfResources if too many wait, TimedOut, InvalidState if `cancelled` says so, which
  /// is asked now and then, or if the pool was stopped; what creating a text fails with.
  enum class Refusal { Busy, TimedOut, Cancelled, Failed };
  struct Answer {
    std::unique_ptr<Lease> lease;
    Refusal refusal = Refusal::Failed;
  };
  Answer take(const std::vector<uint64_t>& prompt, std::chrono::steady_clock::time_point deadline,
              const std::function<bool()>& cancelled);

  /// Ends what is generated, and refuses what waits and comes.
  void stop();

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
  /// The text to use; makes one where that is better. Null if none could be made.
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
