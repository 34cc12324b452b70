#include "tries.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace executorch::fuzz {
namespace {

// No try takes this long on any machine: it does not end. Of processor time; and of time, for what
// waits, which is more where others are let go first.
constexpr unsigned kEndlessSeconds = 60, kWaitingSeconds = 1200;

/// What a process leaves behind, in memory that it shares with the one that started it.
struct Shared {
  uint64_t seed;
  Outcome outcome;
  char what[256];
};
Shared* shared = nullptr;

/// Appends the innermost frames of this executable beyond those that report.
void describe_frames(char* to, size_t size) {
  void* frames[64];
  const int n = backtrace(frames, 64);
  Dl_info own{};
  dladdr(reinterpret_cast<void*>(&describe_frames), &own);
  bool has_left = false, reports = true;  // in the handler, and in libraries that called it
  for (int i = 0, found = 0; i < n && found < 6; ++i) {
    Dl_info info{};
    const bool inside = dladdr(frames[i], &info) != 0 && info.dli_fbase == own.dli_fbase;
    has_left |= !inside;
    reports = reports && !(has_left && inside);
    if (reports || !inside) continue;
    const auto at = static_cast<const char*>(frames[i]) - static_cast<const char*>(info.dli_fbase);
    const int written = std::snprintf(to, size, " %#llx", static_cast<unsigned long long>(at));
    if (written < 0 || static_cast<size_t>(written) >= size) return;
    to += written;
    size -= static_cast<size_t>(written);
    ++found;
  }
}

void report(const char* what) {
  const int n = std::snprintf(shared->what, sizeof(shared->what), "%s at", what);
  describe_frames(shared->what + n, sizeof(shared->what) - static_cast<size_t>(n));
  std::fprintf(stderr, "finding: %s; it was --seed %llu --rounds 1\n", shared->what,
               static_cast<unsigned long long>(shared->seed));
}

void on_signal(int signal) {
  report(signal == SIGALRM || signal == SIGPROF ? "does not end" : strsignal(signal));
  _exit(1);
}
void on_death() {
  report("a sanitizer's report");
}

void watch() {
  static uint8_t stack[64 << 10];  // the own one may be what is exhausted
  stack_t other{};
  other.ss_sp = stack;
  other.ss_size = sizeof(stack);
  sigaltstack(&other, nullptr);
  const bool is_sanitized = __sanitizer_set_death_callback != nullptr;
  if (is_sanitized) __sanitizer_set_death_callback(on_death);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  for (const int each : {SIGALRM, SIGPROF, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    // Sanitizers say more about faults.
    const bool is_own = each == SIGALRM || each == SIGPROF || each == SIGABRT;
    if (!is_sanitized || is_own) sigaction(each, &action, nullptr);
  }
}

void limit_time(unsigned processor_seconds, unsigned seconds) {
  const itimerval limit{{0, 0}, {static_cast<time_t>(processor_seconds), 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
  alarm(seconds);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Until there are no more; ends the process at a finding.
void try_all(const Plan& plan, std::chrono::steady_clock::time_point start, const Try& attempt) {
  Outcome& outcome = shared->outcome;
  while (outcome.tried < plan.rounds &&
         (plan.seconds == 0 || seconds_since(start) < plan.seconds)) {
    shared->seed = plan.seed + outcome.tried++;
    limit_time(kEndlessSeconds, kWaitingSeconds);
    const Verdict verdict = attempt(shared->seed);
    limit_time(0, 0);
    if (verdict == Verdict::TooSlow) fail("takes too long");
    ++(verdict == Verdict::Taken ? outcome.taken : outcome.refused);
  }
}

/// A process for the rest; whether it came to the end.
bool try_in_child(const Plan& plan, std::chrono::steady_clock::time_point start,
                  const Try& attempt) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    try_all(plan, start, attempt);
    std::fflush(nullptr);
    _exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) std::abort();
  if (WIFSIGNALED(status)) {  // without a word: by the kernel, for its memory
    std::snprintf(shared->what, sizeof(shared->what), "killed by signal %d", WTERMSIG(status));
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

void fail(const char* what) {
  std::snprintf(shared->what, sizeof(shared->what), "%s", what);
  std::fprintf(stderr, "finding: %s; it was --seed %llu --rounds 1\n", what,
               static_cast<unsigned long long>(shared->seed));
  std::fflush(nullptr);
  _exit(1);
}

Outcome run(const Plan& plan, const Try& attempt) {
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  shared = new (memory) Shared{};
  const auto start = std::chrono::steady_clock::now();
  watch();
  if (!plan.keep_going) {
    try_all(plan, start, attempt);
    return shared->outcome;
  }
  std::map<std::string, std::pair<uint64_t, uint64_t>> findings;  // first seed, count
  while (!try_in_child(plan, start, attempt)) {
    auto& [seed, count] = findings[shared->what];
    if (count++ == 0) seed = shared->seed;
  }
  for (const auto& [what, at] : findings) {
    std::printf("%6llu  %s; --seed %llu\n", static_cast<unsigned long long>(at.second),
                what.c_str(), static_cast<unsigned long long>(at.first));
  }
  shared->outcome.findings = findings.size();
  return shared->outcome;
}

}  // namespace executorch::fuzz
