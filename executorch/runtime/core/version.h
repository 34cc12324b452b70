#pragma once

// The release whose interface this is; equals the version of the CMake project.
#define ET_VERSION_MAJOR 1
#define ET_VERSION_MINOR 5
#define ET_VERSION_PATCH 1
#define ET_VERSION "1.5.1"
// The same as one number, to compare with.
#define ET_VERSION_CODE (ET_VERSION_MAJOR * 10000 + ET_VERSION_MINOR * 100 + ET_VERSION_PATCH)
// Whether this release is `major`.`minor`.`patch` or a later one.
#define ET_VERSION_CHECK(major, minor, patch) \
  (ET_VERSION_CODE >= (major)*10000 + (minor)*100 + (patch))
