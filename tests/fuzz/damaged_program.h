#pragma once

#include <cstddef>
#include <cstdint>

/// What became of the bytes.
enum class Outcome { Refused, NotLoaded, Failed, Ran };

/// Does everything a caller can do with a program in `data` (16-byte aligned): loads it, reads all
/// metadata, loads every method, sets inputs at their upper bounds, runs at most `max_instructions`
/// instructions of each, reads outputs. What the bytes ask of memory is given up to a limit.
Outcome use_program(const uint8_t* data, size_t size, size_t max_instructions);
