#include "sql/session/path_rules.h"

#include <algorithm>
#include <filesystem>

#include "data/objects/object_uri.h"
#include "sql/tables/table.h"

namespace shoal::sql {
namespace {

namespace fs = std::filesystem;

// The path before the first component with a character of patterns.
std::string WithoutPattern(const std::string& path) {
  const size_t special = path.find_first_of("*?[{");
  if (special == std::string::npos) return path;
  const size_t slash = path.rfind('/', special);
  return slash == std::string::npos ? "/" : path.substr(0, slash + 1);
}

bool IsBelow(const fs::path& path, const std::string& directory) {
  std::error_code error;
  fs::path root = fs::weakly_canonical(directory, error);
  if (error) root = fs::path(directory).lexically_normal();
  if (root.has_relative_path() && !root.has_filename()) root = root.parent_path();
  const auto [at, rest] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  return at == root.end();
}

bool IsBelowAny(const fs::path& path, const std::vector<std::string>& directories) {
  return std::ranges::any_of(directories,
                             [&](const std::string& one) { return IsBelow(path, one); });
}

}  // namespace

Status PathRules::Check(const std::string& path) const {
  const std::string shown = path.substr(0, 256);
  if (data::IsRemoteUri(path))
    return PermissionDenied(shown +
                            " is not a file of the server's machine; sessions at a server "
                            "have no credentials of stores");
  std::error_code error;
  const fs::path real = fs::weakly_canonical(WithoutPattern(AbsolutePath(path)), error);
  if (error) return PermissionDenied(shown + " cannot be looked at: " + error.message());
  if (IsBelowAny(real, own)) return Status::Ok();
  if (!IsBelowAny(real, denied) && (allowed.empty() || IsBelowAny(real, allowed)))
    return Status::Ok();
  std::string list;
  for (const std::string& one : own) list += (list.empty() ? "" : ", ") + one;
  for (const std::string& one : allowed) list += (list.empty() ? "" : ", ") + one;
  return PermissionDenied(shown + " is none of the paths that this session may use" +
                          (allowed.empty() ? std::string() : "; they begin with " + list));
}

}  // namespace shoal::sql
