#include "serving/endpoint/version_follower.h"

#include <fmt/format.h>

#include <utility>

namespace shoal::serving {

bool VersionFollower::is_pinned() const {
  return !reference_.version.empty() &&
         reference_.version.find_first_not_of("0123456789") == std::string::npos;
}

Result<std::shared_ptr<const ServedModel>> VersionFollower::LoadVersion(
    const ModelVersion& version) {
  TRY_ASSIGN(const std::filesystem::path directory,
             registry_.Fetch(reference_.name, version, scratch_));
  auto model = ServedModel::Load(directory, reference_.name, version.number);
  if (directory.string().starts_with(scratch_.string() + "/")) {
    std::error_code ignored;  // a copy is read whole and not needed again
    std::filesystem::remove_all(directory, ignored);
  }
  return model;
}

Result<std::shared_ptr<const ServedModel>> VersionFollower::Load() {
  TRY(registry_.Refresh(reference_.name, &history_).status());
  TRY_ASSIGN(const ModelVersion version, registry_.Find(reference_));
  return LoadVersion(version);
}

Result<uint64_t> VersionFollower::Poll(ModelServer* server) {
  if (is_pinned()) return uint64_t{0};
  TRY_ASSIGN(const bool more, registry_.Refresh(reference_.name, &history_));
  if (!more && !behind_) return uint64_t{0};
  behind_ = true;
  TRY_ASSIGN(const ModelVersion version, registry_.Find(reference_));
  const auto current = server->Current(reference_.name);
  const bool other = current != nullptr && current->version() != version.number;
  if (other) {
    TRY_ASSIGN(auto model, LoadVersion(version));
    TRY(server->Swap(std::move(model)));
  }
  behind_ = false;
  return other ? version.number : 0;
}

}  // namespace shoal::serving
