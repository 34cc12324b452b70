#pragma once

static constexpr const char* DYNAMIC_LIBRARY_NOT_SUPPORTED = "NOT_SUPPORTED";
static constexpr const char* DYNAMIC_LIBRARY_NOT_FOUND = "NOT_FOUND";

extern "C" {

/// The file of the library or program that holds the code or data at `addr`; one of the two
/// strings above when the system cannot tell or `addr` is in none.
const char* et_pal_get_shared_library_name(const void* addr);
}
