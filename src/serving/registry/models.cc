#include "serving/registry/models.h"

#include <fmt/format.h>

namespace shoal::serving {

Result<ModelVersion> FindIn(const ModelHistory& history, const ModelReference& reference) {
  const std::string& asked = reference.version;
  uint64_t number = 0;
  if (asked.empty()) {
    number = history.Tagged(kPromoted).value_or(0);
    for (uint64_t i = history.versions().size(); number == 0 && i > 0; --i) {
      if (!history.versions()[i - 1].deleted) number = i;
    }
    if (number == 0) return NotFound(reference.name + ": all its versions were deleted");
  } else if (asked.front() >= '0' && asked.front() <= '9' &&
             asked.find_first_not_of("0123456789") == std::string::npos) {
    number = asked.size() > 18 ? UINT64_MAX : std::stoull(asked);
  } else if (const auto tagged = history.Tagged(asked); tagged) {
    number = *tagged;
  } else {
    std::vector<std::string> tags;
    for (const auto& [tag, version] : history.tags()) tags.push_back(tag);
    return NotFound(fmt::format("{}: no version has the tag {}; its tags are {}", reference.name,
                                asked,
                                tags.empty() ? "none" : fmt::format("{}", fmt::join(tags, ", "))));
  }
  const auto version = history.Find(number);
  if (!version.ok()) return version.status().With(reference.name);
  return **version;
}

Result<ModelVersion> Models::Find(const ModelReference& reference) {
  TRY_ASSIGN(const ModelHistory history, Read(reference.name));
  return FindIn(history, reference);
}

}  // namespace shoal::serving
