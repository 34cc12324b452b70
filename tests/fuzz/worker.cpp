#include "worker.h"

#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace executorch::fuzz {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kHasSanitizer = true;
#else
constexpr bool kHasSanitizer = false;
#endif
constexpr rlim_t kMaxAddresses = rlim_t{6} << 30;

Shared* here = nullptr;

void record_signal(int number) {
  here->signal = number;
  here->n_frames = static_cast<uint32_t>(backtrace(here->frames, kMaxFrames));
  _exit(99);
}

void catch_signals() {
  static uint8_t stack[64 << 10];
  stack_t other{};
  other.ss_sp = stack;
  other.ss_size = sizeof(stack);
  sigaltstack(&other, nullptr);
  struct sigaction action {};
  action.sa_handler = record_signal;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGVTALRM, &action, nullptr);
  sigaction(SIGALRM, &action, nullptr);
  if (kHasSanitizer) {
    return;  // which reports the others
  }
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) {
    sigaction(number, &action, nullptr);
  }
}

uint64_t now_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1000000;
}

void add_note(Kind kind, uint64_t index) {
  if (here->n_notes < kMaxNotes) {
    here->notes[here->n_notes++] = {kind, index, here->progress.slowest,
                                    here->progress.cpu_seconds};
  }
}

// No mutant leaves the timer on, so that a slow one is not taken for endless.
void set_timer(double seconds) {
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(seconds);
  setitimer(ITIMER_VIRTUAL, &timer, nullptr);
}

void run_one(const Groups& groups, uint64_t index, const Limits& limits) {
  const Mutant mutant = groups.mutant(index);
  if (groups.is_muted[mutant.group]) return;
  here->index = index;
  here->progress = {};
  const Bytes program = groups.bytes(mutant);
  here->started_ms = now_ms();
  set_timer(limits.endless_seconds);
  const Verdict verdict = run_guarded(program, mutant.run, here->progress);
  ++here->counts[mutant.group][static_cast<size_t>(verdict.outcome)];
  if (verdict.misdeed == Misdeed::ProgramWritten) {
    add_note(Kind::ProgramWritten, index);
  } else if (verdict.misdeed == Misdeed::MemoryWritten) {
    add_note(Kind::MemoryWritten, index);
  } else if (verdict.misdeed == Misdeed::Leak) {
    add_note(Kind::Leak, index);
  } else if (here->progress.seconds_beyond_honest() > limits.slow_seconds) {
    add_note(Kind::Slow, index);
  }
}

void redirect_output(const std::string& log) {
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file >= 0) {
    dup2(file, 1);
    dup2(file, 2);
    close(file);
  }
}

}  // namespace

Mutant Groups::mutant(uint64_t index) const {
  Random random(index * 0x2545f4914f6cdd1d + session);
  Mutant made;
  made.group = index % seeds.size();
  made.seed = random.below(seeds[made.group].size());
  made.mutation = random.next();
  made.run = random.next();
  return made;
}

Bytes Groups::bytes(const Mutant& mutant) const {
  return seeds[mutant.group][mutant.seed].mutate(Random(mutant.mutation));
}

pid_t start_worker(const Groups& groups, Shared& shared, uint64_t begin, uint64_t end,
                   uint64_t stride, const Limits& limits, const std::string& log, size_t threads) {
  shared.index = begin;
  shared.started_ms = now_ms();
  shared.n_notes = shared.n_frames = 0;
  shared.signal = 0;
  shared.progress = {};
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid != 0) return pid;
  here = &shared;
  redirect_output(log);
  if (!kHasSanitizer) {
    const rlimit limit{kMaxAddresses, kMaxAddresses};
    setrlimit(RLIMIT_AS, &limit);
  }
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  void* frame;
  backtrace(&frame, 1);  // loads what it needs before there is trouble
  catch_signals();
  prepare_runs(threads, limits.logs);
  for (uint64_t index = begin; index < end && shared.n_notes < kMaxNotes; index += stride) {
    run_one(groups, index, limits);
  }
  set_timer(0);
  shared.index = end;
  std::exit(0);  // not _exit: the leak sanitizer looks now
}

Verdict run_here(const Bytes& program, uint64_t run, Progress& progress) {
  prepare_runs(1, true);
  return run_guarded(program, run, progress);
}

}  // namespace executorch::fuzz
