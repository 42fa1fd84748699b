// What has happened to a model of the registry: the versions that it got, tags, deletions. A model
// is a log of entries, each an object that is made once and never changed; its state is what they
// come to (ADR 450). docs/formats/model-registry.md has the format.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace shoal::serving {

inline constexpr std::string_view kPromoted = "promoted";  // the tag of the version to be served
inline constexpr size_t kMaxVersionFiles = 10'000;

struct VersionFile {
  std::string name;  // its path below the version's folder
  uint64_t bytes = 0;
  std::string sha256;  // hex
};

// Plain data.
struct ModelVersion {
  uint64_t number = 0;
  std::string created;  // RFC 3339
  std::string by;       // user
  std::string job;      // ID; empty: it was imported
  std::string source;   // where its files were
  std::string folder;   // of its files, below "NAME/files/"
  std::vector<VersionFile> files;
  std::string digest;     // of names and digests of all files
  json::object metadata;  // of its model.json: format, parameters, measures, data's digest
  bool deleted = false;

  uint64_t bytes() const;
};

class ModelHistory {
 public:
  // Adds the next entry. DataLoss if it is none, or says what cannot be.
  Status Apply(const json::object& entry);

  uint64_t entries() const { return entries_; }
  const std::vector<ModelVersion>& versions() const { return versions_; }  // by number, from 1
  // NotFound if there is none or it was deleted.
  Result<const ModelVersion*> Find(uint64_t number) const;
  // The version that a tag names now.
  std::optional<uint64_t> Tagged(std::string_view tag) const;
  // What a tag named before it names what it does now, if a rollback can lead there.
  std::optional<uint64_t> Before(std::string_view tag) const;
  // By tag.
  std::map<std::string, uint64_t> tags() const;
  // All that name the version, in order.
  std::vector<std::string> TagsOf(uint64_t number) const;

 private:
  Status ApplyAdd(const json::object& entry);
  Status ApplyTag(const json::object& entry);
  Status ApplyDelete(const json::object& entry);
  bool Lives(uint64_t number) const;

  uint64_t entries_ = 0;
  std::vector<ModelVersion> versions_;
  std::map<std::string, std::vector<uint64_t>, std::less<>> tags_;  // what each has named
};

// An entry that adds a version.
json::object EntryOf(const ModelVersion& version);

// Letters, digits, '.', '_' and '-', at most 64, the first a letter or digit. InvalidArgument.
Status CheckModelName(std::string_view name);
// The same, but not only digits, which are numbers of versions.
Status CheckTag(std::string_view tag);
// A name of the registry for the directory or URI of a model: its last part, with '-' for
// characters that names do not have.
std::string NameForPath(std::string_view path);

// "NAME", "NAME@3" or "NAME@TAG". InvalidArgument.
struct ModelReference {
  std::string name;
  std::string version;  // a number or a tag; empty: none is given
};
Result<ModelReference> ParseModelReference(std::string_view text);

}  // namespace shoal::serving
