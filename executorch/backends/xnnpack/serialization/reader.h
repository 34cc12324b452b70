/// Payloads as JSON, and what schema.fbs says of nodes, for Python.
#pragma once

#include <nanobind/nanobind.h>

namespace executorch::backends::xnnpack {

/// The graph with the names of schema.fbs; what has its default is left out. ValueError: the bytes
/// are no payload.
nanobind::str read_payload(const nanobind::bytes& payload);
/// By the names of kinds, in the order of their numbers from 1: the fields of nodes, with
/// Python's types.
nanobind::dict node_fields();
/// Where the constants that are not named data begin.
uint64_t constants_offset(const nanobind::bytes& payload);

}  // namespace executorch::backends::xnnpack
