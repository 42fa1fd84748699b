#include "job/place.h"

namespace shoal::job {

Place FieldPlaces::Of(const std::string& path) const {
  std::string part = path;
  for (;;) {
    const auto known = at.find(part);
    if (known != at.end()) return known->second;
    const size_t dot = part.rfind('.');
    if (dot == std::string::npos) return {1, 1, -1};
    part.resize(dot);
  }
}

std::string FieldPlaces::Prefix(const std::string& file, const std::string& path) const {
  return at.empty() ? "" : PlaceText(file, set, Of(path)) + ": ";
}

}  // namespace shoal::job
