/// Fusion of instructions when a method is loaded. Linking this library registers it; the file is
/// not changed, and runs without it.
#pragma once

#include <executorch/runtime/executor/method_rewriter.h>

#include <string>

namespace executorch::optimized {

/// Whether methods that are loaded from now on are fused (they are, unless this says otherwise);
/// returns what was set before. For comparison and debugging.
bool set_fusion_enabled(bool enabled);

/// What became of the method that was loaded last in this process, a line for each instruction
/// that is fused: "<instruction>: <name> <- <operators>".
std::string last_fusion();

/// A runtime::DescribeRewritten.
bool describe_fused(const runtime::Instruction& instruction, runtime::Rewritten& out);

}  // namespace executorch::optimized
