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
#include "serving/registry/model_source.h"
#include "serving/registry/models.h"

namespace shoal::serving {

// Thread-safe.
class ModelRegistry final : public Models {
 public:
  // `root`: a directory or a URI of one; made by the first version. `stores` outlives it.
  // InvalidArgument for a place that cannot be written, such as https://.
  static Result<std::unique_ptr<ModelRegistry>> Open(data::ObjectStores* stores,
                                                     const std::string& root,
                                                     const Clock* clock = RealClock::Get());

  const std::string& place() const override { return root_; }

  // Lists what is below the root.
  Result<std::vector<std::string>> Names() override;
  Result<ModelHistory> Read(const std::string& name) override;
  // Reads on from what it has read before.
  Result<bool> Refresh(const std::string& name, ModelHistory* history) override;

  Result<ModelVersion> Add(const std::string& name, const std::string& model,
                           const Provenance& from) override {
    return Add(name, model, from, {});
  }
  // Likewise of a directory of this machine with less rights than this process's.
  Result<ModelVersion> Add(const std::string& name, const std::string& model,
                           const Provenance& from, const SourceAccess& access);
  // Once for each job: AlreadyExists if it has added a version before, also one that was deleted.
  Result<ModelVersion> AddOnce(const std::string& name, const std::string& model,
                               const Provenance& from, const SourceAccess& access);

  Status Tag(const std::string& name, const std::string& tag, uint64_t version,
             const std::string& by) override;
  Result<uint64_t> Rollback(const std::string& name, const std::string& by) override;
  Status Delete(const std::string& name, uint64_t version, const std::string& by) override;
  Result<std::filesystem::path> Fetch(const std::string& name, const ModelVersion& version,
                                      const std::filesystem::path& scratch) override;
  Status Export(const std::string& name, const ModelVersion& version,
                const std::string& to) override;
  // The directory of a version's files, unchecked. FailedPrecondition if the registry is none.
  Result<std::filesystem::path> DirectoryOf(const std::string& name,
                                            const ModelVersion& version) const;

 private:
  // The next entry for what has happened so far.
  using Decide = std::function<Result<json::object>(const ModelHistory&)>;
  using Allow = std::function<Status(const ModelHistory&)>;

  ModelRegistry(data::ObjectStores* stores, std::string root, const Clock* clock)
      : stores_(*stores), root_(std::move(root)), clock_(*clock) {}
  std::string Below(std::string_view path) const;
  // Adds the entry that `decide` gives, again while other processes are faster.
  Result<ModelHistory> Append(const std::string& name, const std::string& by, const Decide& decide);
  Result<ModelVersion> AddAllowed(const std::string& name, const std::string& model,
                                  const Provenance& from, const SourceAccess& access,
                                  const Allow& allow);
  Result<std::vector<VersionFile>> CopyFiles(const std::string& from, const std::string& to);
  Result<std::vector<VersionFile>> TakeFiles(const std::string& from, const std::string& to,
                                             const SourceAccess& access);
  Result<VersionFile> CopyFile(const std::string& from, const std::string& to,
                               const std::string& name);
  Status CheckFile(const std::string& uri, const VersionFile& file);
  Status CopyVersion(const std::string& name, const ModelVersion& version, const std::string& to);
  Status RemoveFolder(const std::string& folder);

  data::ObjectStores& stores_;
  const std::string root_;  // without '/' at its end
  const Clock& clock_;
};

// What model.json has, without what is long: its columns.
json::object SummaryOf(const json::object& metadata);

}  // namespace shoal::serving
