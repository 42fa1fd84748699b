// Files of records that were written by a command: each appears whole, with its checksum in a mark
// that is written last, so that a folder with the mark is complete.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/json.h"
#include "base/status.h"
#include "data/objects/object_stores.h"

namespace shoal::data {

// Names that begin with '_' are no data to listings (ObjectStores::Expand).
inline constexpr std::string_view kDoneMark = "_SUCCESS";

struct PartFileInfo {
  std::string name;
  uint64_t records = 0;
  uint64_t bytes = 0;
  std::string sha256;
  bool operator==(const PartFileInfo&) const = default;
};

// One of them. Not thread-safe.
class PartFile {
 public:
  // `folder` ends with '/'.
  static Result<PartFile> Create(ObjectStores* stores, const std::string& folder,
                                 const std::string& name);
  // Collected in blocks of 1 MiB.
  Status Append(std::string_view bytes);
  void CountRecord() { ++info_.records; }
  // Makes it visible.
  Result<PartFileInfo> Finish();

 private:
  PartFile(std::unique_ptr<ObjectWriter> writer, std::string name) : writer_(std::move(writer)) {
    info_.name = std::move(name);
  }
  Status Flush();
  std::unique_ptr<ObjectWriter> writer_;
  Sha256 digest_;
  std::string block_;
  PartFileInfo info_;
};

// What the mark of a folder says.
struct DoneFiles {
  std::string of;  // what they were made of, to see whether that is still so
  std::vector<PartFileInfo> files;
  uint64_t records() const;
};
json::object ToJson(const DoneFiles& done);
Result<DoneFiles> DoneFilesFromJson(const json::object& object);
// `mark`: its name in the folder. NotFound if it is not there.
Result<DoneFiles> ReadDone(ObjectStores* stores, const std::string& folder,
                           const std::string& mark);
Status WriteDone(ObjectStores* stores, const std::string& folder, const std::string& mark,
                 const DoneFiles& done);

}  // namespace shoal::data
