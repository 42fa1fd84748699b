// Which job trained on what: tables, columns and versions of objects, to the outputs of the job.
// Kept when the job's own record is gone.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "controller/store/job_record.h"
#include "controller/store/records.h"
#include "data/objects/object.h"

namespace shoal::api {

inline constexpr size_t kMaxLineageObjects = 500;  // of one data set; more are counted

struct LineageTable {
  std::string data;
  std::string table;
  std::vector<std::string> columns;
  std::string rows;
  std::map<std::string, std::string> masks;  // by column
  bool gated = false;                        // else workers read the sources themselves
  std::vector<data::ObjectInfo> objects;     // of gated ones, once they are known
  uint64_t object_count = 0;

  bool operator==(const LineageTable&) const = default;
};

struct LineageRecord {
  std::string job;
  std::string name;
  std::string user;
  std::string team;
  WallTime time{};
  std::map<std::string, std::string> outputs;  // "model" → where it is
  std::vector<LineageTable> tables;
};

// The list `objects` of a table of lineage, or of what a gate reports; what is malformed is left
// out.
std::vector<data::ObjectInfo> ObjectsIn(const json::object& object);

json::object ToJson(const LineageRecord& record);
Result<LineageRecord> LineageFromJson(const json::object& object);

// Thread-safe. Blocks on the store.
class Lineage {
 public:
  // Must outlive it.
  explicit Lineage(controller::Records* records, const Clock* clock)
      : records_(records), clock_(clock) {}

  Status Put(const LineageRecord& record);
  // NotFound.
  Result<LineageRecord> Get(const std::string& job);
  // Notes the versions that the gate has opened.
  Status NoteObjects(const std::string& job, const std::string& data,
                     const std::vector<data::ObjectInfo>& objects);
  // Visits all records, by job.
  Status ForEach(const std::function<void(const LineageRecord&)>& visit);

 private:
  controller::Records* const records_;
  const Clock* const clock_;
};

}  // namespace shoal::api
