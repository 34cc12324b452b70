#pragma once

// The release whose interface this is; equals the version of the CMake project.
#define ET_VERSION_MAJOR 1
#define ET_VERSION_MINOR 5
#define ET_VERSION_PATCH 1
#define ET_VERSION "1.5.1"
