#include "cli/commands/neighbours.h"

#include <fmt/format.h>

#include <algorithm>

namespace shoal::cli {

std::string NeighboursText(const model::VectorIndex& index,
                           const std::vector<model::Neighbour>& near) {
  size_t width = 0;
  for (const model::Neighbour& one : near) width = std::max(width, index.word(one.row).size());
  std::string text;
  for (const model::Neighbour& one : near) {
    text += fmt::format("  {:<{}}  {:.4f}\n", index.word(one.row), width, one.similarity);
  }
  return text;
}

json::array NeighboursJson(const model::VectorIndex& index,
                           const std::vector<model::Neighbour>& near) {
  json::array array;
  for (const model::Neighbour& one : near) {
    array.push_back({{"word", index.word(one.row)}, {"similarity", one.similarity}});
  }
  return array;
}

}  // namespace shoal::cli
