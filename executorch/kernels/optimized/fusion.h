/// Fusion of instructions when a method is loaded. Linking this library registers the fusion.
/// Program files are not changed and run without it as well.
#pragma once

#include <executorch/runtime/executor/method_rewriter.h>

#include <string>

namespace executorch::optimized {

/// Sets whether methods that are loaded from now on are fused (the default is true), and returns
/// the previous setting. For comparison and debugging.
bool set_fusion_enabled(bool enabled);

/// Describes the fusion of the method that was loaded last in this process, with a line for each
/// fused instruction: "<instruction>: <name> <- <operators>".
std::string last_fusion();

/// A runtime::DescribeRewritten function: describes a fused instruction.
bool describe_fused(const runtime::Instruction& instruction, runtime::Rewritten& out);

}  // namespace executorch::optimized
