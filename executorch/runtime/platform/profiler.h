/// The profiler before ETDump. Its macros stand in old code; they do nothing. Pass an EventTracer
/// to record times.
#pragma once

#define EXECUTORCH_SCOPE_PROF(name) ((void)0)
#define EXECUTORCH_PROFILE_INSTRUCTION_SCOPE(chain_idx, instruction_idx) ((void)0)
#define EXECUTORCH_PROFILE_CREATE_BLOCK(name) ((void)0)
#define EXECUTORCH_BEGIN_PROF(name) (0u)
#define EXECUTORCH_END_PROF(token_id) ((void)(token_id))
#define EXECUTORCH_DUMP_PROFILE_RESULTS(result) ((void)(result))
#define EXECUTORCH_RESET_PROFILE_RESULTS() ((void)0)
#define EXECUTORCH_TRACK_ALLOCATOR(name) ((void)(name), -1)
#define EXECUTORCH_TRACK_ALLOCATION(id, size) ((void)(id), (void)(size))
