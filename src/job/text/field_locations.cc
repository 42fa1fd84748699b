#include "job/text/field_locations.h"

namespace shoal::job {

SourceLocation FieldLocations::Of(const std::string& path) const {
  std::string part = path;
  for (;;) {
    const auto known = at.find(part);
    if (known != at.end()) return known->second;
    const size_t dot = part.rfind('.');
    if (dot == std::string::npos) return {1, 1, -1};
    part.resize(dot);
  }
}

std::string FieldLocations::Prefix(const std::string& file, const std::string& path) const {
  return at.empty() ? "" : FormatLocation(file, set, Of(path)) + ": ";
}

}  // namespace shoal::job
