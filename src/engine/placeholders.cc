#include "engine/placeholders.h"

namespace shoal::engine {

std::string ExpandPlaceholders(std::string_view text, const PlaceholderValues& values) {
  std::string filled;
  while (!text.empty()) {
    const size_t open = text.find('{');
    filled += text.substr(0, open);
    if (open == std::string_view::npos) break;
    text.remove_prefix(open);
    const auto found = values.find(std::string(text.substr(0, text.find('}') + 1)));
    filled += found == values.end() ? "{" : found->second;
    text.remove_prefix(found == values.end() ? 1 : found->first.size());
  }
  return filled;
}

}  // namespace shoal::engine
