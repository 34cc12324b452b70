#pragma once

/// 1: names of enumerators are compiled in for messages.
#ifndef ET_ENABLE_ENUM_STRINGS
#define ET_ENABLE_ENUM_STRINGS 1
#endif
