// The versions of models that a command or a server works with: a registry of its own
// (model_registry.h), or that of a team of a server (api/client/remote_models.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"
#include "serving/registry/model_history.h"

namespace shoal::serving {

// Where a version comes from.
struct Provenance {
  std::string by = {};
  std::string job = {};
  std::string source = {};  // empty: the directory itself
};

// Thread-safe. Blocks on its store. `by` is who asks; a server knows that itself.
class Models {
 public:
  virtual ~Models() = default;
  // For messages: a directory, a URI, or the team and the server.
  virtual const std::string& place() const = 0;

  // In order.
  virtual Result<std::vector<std::string>> Names() = 0;
  // NotFound, with a similar name, if there is no such model.
  virtual Result<ModelHistory> Read(const std::string& name) = 0;
  // Brings `history` up to date; true if there was more. NotFound is no error, there is nothing.
  virtual Result<bool> Refresh(const std::string& name, ModelHistory* history) = 0;
  // Of NAME@3, NAME@TAG, and of NAME alone the version with the tag promoted, else the newest.
  Result<ModelVersion> Find(const ModelReference& reference);

  // Copies the files of a model, a directory or a folder of a store, and makes the next version of
  // them, which appears whole or not at all. Files and directories that begin with '.' or '_' are
  // left out. NotFound if there is nothing.
  virtual Result<ModelVersion> Add(const std::string& name, const std::string& model,
                                   const Provenance& from) = 0;
  // `version`: 0 removes the tag. NotFound.
  virtual Status Tag(const std::string& name, const std::string& tag, uint64_t version,
                     const std::string& by) = 0;
  // Promotes what was promoted before what is now; gives its number. FailedPrecondition if nothing
  // was.
  virtual Result<uint64_t> Rollback(const std::string& name, const std::string& by) = 0;
  // FailedPrecondition if a tag names it. The number is not used again.
  virtual Status Delete(const std::string& name, uint64_t version, const std::string& by) = 0;

  // A directory with the files of a version, whose digests were checked: its own where the registry
  // is a directory, else a copy in `scratch`. DataLoss if a file is not what it was.
  virtual Result<std::filesystem::path> Fetch(const std::string& name, const ModelVersion& version,
                                              const std::filesystem::path& scratch) = 0;
  // Copies the files of a version to a new directory or a folder of a store; checks digests.
  // AlreadyExists if there is something.
  virtual Status Export(const std::string& name, const ModelVersion& version,
                        const std::string& to) = 0;
};

// The version of a model's history that a reference to it means. NotFound.
Result<ModelVersion> FindIn(const ModelHistory& history, const ModelReference& reference);

}  // namespace shoal::serving
