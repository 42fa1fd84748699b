// Output format of `shoal nearest` and `shoal analogy`.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "model/vector_index.h"

namespace shoal::cli {

// Aligned lines "  queen     0.7123\n".
std::string NeighboursText(const model::VectorIndex& index,
                           const std::vector<model::Neighbour>& near);
// [{"word": "queen", "similarity": 0.7123}, …]
json::array NeighboursJson(const model::VectorIndex& index,
                           const std::vector<model::Neighbour>& near);

}  // namespace shoal::cli
