/// Damages files and messages that are mostly text: structure, numbers, bytes.
#pragma once

#include <random>
#include <string>
#include <vector>

namespace executorch::fuzz {

using Random = std::mt19937_64;

/// One to eight changes. Of bytes: bits, numbers that become extreme, pieces that go, come again,
/// come often (so that brackets nest), are exchanged, or come from one of `others`. Where `bytes`
/// are JSON, most often of values instead: those become others or extreme, go, nest, or come often.
std::string mutate_text(std::string bytes, const std::vector<std::string>& others, Random& random);

}  // namespace executorch::fuzz
