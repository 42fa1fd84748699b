// How `shoal nearest` and `shoal analogy` show what they found.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "model/vector_index.h"

namespace shoal::cli {

// "  queen     0.7123\n" a line, aligned.
std::string NeighboursText(const model::VectorIndex& index,
                           const std::vector<model::Neighbour>& near);
// [{"word": "queen", "similarity": 0.7123}, …]
json::array NeighboursJson(const model::VectorIndex& index,
                           const std::vector<model::Neighbour>& near);

}  // namespace shoal::cli
