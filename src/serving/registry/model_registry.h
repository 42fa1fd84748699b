// The registry of models: a directory of this machine, HDFS or S3 with all versions of all models,
// that several processes read and write at once without a server (ADR 450). Used by `shoal models`,
// `shoal publish` and at the end of jobs.
//
//   ROOT/NAME/log/00000001.json       entries: versions, tags, deletions (model_history.h)
//   ROOT/NAME/files/FOLDER/…          the files of a version
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "data/objects/object_stores.h"
#include "serving/registry/model_history.h"

namespace shoal::serving {

// Where a version comes from.
struct Provenance {
  std::string by = {};
  std::string job = {};
  std::string source = {};  // empty: the directory itself
};

// Thread-safe.
class ModelRegistry {
 public:
  // `root`: a directory or a URI of one; made by the first version. `stores` outlives it.
  // InvalidArgument for a place that cannot be written, such as https://.
  static Result<std::unique_ptr<ModelRegistry>> Open(data::ObjectStores* stores,
                                                     const std::string& root,
                                                     const Clock* clock = RealClock::Get());

  const std::string& root() const { return root_; }

  // Copies the files of a model, a directory or a folder of a store, and makes the next version of
  // them, which appears whole or not at all. Files and directories that begin with '.' or '_' are
  // left out. NotFound if there is nothing.
  Result<ModelVersion> Add(const std::string& name, const std::string& model,
                           const Provenance& from);

  // In order. Lists what is below the root.
  Result<std::vector<std::string>> Names();
  // NotFound, with a similar name, if there is no such model.
  Result<ModelHistory> Read(const std::string& name);
  // Reads on from what it has read before; true if there was more.
  Result<bool> Refresh(const std::string& name, ModelHistory* history);
  // Of NAME@3, NAME@TAG, and of NAME alone the version with the tag promoted, else the newest.
  Result<ModelVersion> Find(const ModelReference& reference);

  // `version`: 0 removes the tag. NotFound.
  Status Tag(const std::string& name, const std::string& tag, uint64_t version,
             const std::string& by);
  // Promotes what was promoted before what is now; gives its number. FailedPrecondition if nothing
  // was.
  Result<uint64_t> Rollback(const std::string& name, const std::string& by);
  // FailedPrecondition if a tag names it. The number is not used again.
  Status Delete(const std::string& name, uint64_t version, const std::string& by);

  // A directory with the files of a version, whose digests were checked: its own where the registry
  // is a directory, else a copy in `scratch`. DataLoss if a file is not what it was.
  Result<std::filesystem::path> Fetch(const std::string& name, const ModelVersion& version,
                                      const std::filesystem::path& scratch);
  // Copies the files of a version to a new directory or a folder of a store; checks digests.
  // AlreadyExists if there is something.
  Status Export(const std::string& name, const ModelVersion& version, const std::string& to);

 private:
  // The next entry for what has happened so far.
  using Decide = std::function<Result<json::object>(const ModelHistory&)>;

  ModelRegistry(data::ObjectStores* stores, std::string root, const Clock* clock)
      : stores_(*stores), root_(std::move(root)), clock_(*clock) {}
  std::string Below(std::string_view path) const;
  // Adds the entry that `decide` gives, again while other processes are faster.
  Result<ModelHistory> Append(const std::string& name, const std::string& by, const Decide& decide);
  Result<std::vector<VersionFile>> CopyFiles(const std::string& from, const std::string& to);
  Result<VersionFile> CopyFile(const std::string& from, const std::string& to,
                               const std::string& name);
  Status CheckFile(const std::string& uri, const VersionFile& file);
  Status CopyVersion(const std::string& name, const ModelVersion& version, const std::string& to);

  data::ObjectStores& stores_;
  const std::string root_;  // without '/' at its end
  const Clock& clock_;
};

// What model.json has, without what is long: its columns.
json::object SummaryOf(const json::object& metadata);

}  // namespace shoal::serving
