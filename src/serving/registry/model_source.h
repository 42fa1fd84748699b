// The directory of a model on this machine, whose files a registry takes over: by sharing their
// blocks where the file system can, or the files themselves where that is safe (ADR 472), else by
// copying.
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "serving/registry/model_history.h"

namespace shoal::serving {

// How the files of a model are reached.
struct SourceAccess {
  // False: links in the directory, and in the path to it unless `trusts_path`, are refused, since
  // another user can have put them there.
  bool follow_links = true;
  bool trusts_path = true;
  // A directory with whose owner's rights files are opened (FileAccessAs); empty: this process's.
  std::filesystem::path rights_of = {};
};

// Files of at least this size are linked.
inline constexpr uint64_t kLinkFromBytes = 1 << 20;

// Not thread-safe.
class ModelSource {
 public:
  // NotFound without such a directory; PermissionDenied if it is, or lies behind, a link that must
  // not be followed.
  static Result<ModelSource> Open(const std::filesystem::path& directory,
                                  const SourceAccess& access);

  // The paths of its files below it, sorted, without those that begin with '.' or '_' in a part.
  // InvalidArgument above kMaxVersionFiles.
  Result<std::vector<std::string>> List() const;
  // Makes the file `to` of one of them and gives its length and digest. `to` must not exist; its
  // directory is made. Synced.
  Result<VersionFile> Take(const std::string& name, const std::filesystem::path& to) const;

 private:
  ModelSource(std::filesystem::path path, UniqueFd directory, SourceAccess access)
      : path_(std::move(path)), directory_(std::move(directory)), access_(std::move(access)) {}
  Result<UniqueFd> OpenBelow(const std::string& name, int flags) const;
  Status ListBelow(const std::string& folder, int depth, std::vector<std::string>* names) const;
  void ReadWrittenFiles();
  bool MayLink(const std::string& name, int fd) const;

  std::filesystem::path path_;
  UniqueFd directory_;
  SourceAccess access_;
  std::set<std::string, std::less<>> written_;  // files that Shoal wrote, by model.json
};

}  // namespace shoal::serving
