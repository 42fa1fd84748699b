// What a gate gives to the programs of one job. Written by the server into the standard input of
// the gate's process, since it has credentials. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "data/catalog/mask.h"
#include "data/catalog/predicate.h"
#include "data/formats/record_reader.h"

namespace shoal::data {

// Environment variable of a job's programs: "HOST:PORT TOKEN".
inline constexpr const char* kGateVariable = "SHOAL_GATE";
inline constexpr size_t kMaxGateObjects = 100'000;  // of one data set

// One data set of the job: the part of a table that its user may read.
struct GateTable {
  std::string data;   // name of the data set
  std::string table;  // "ads.clicks", for messages
  std::vector<std::string> sources;
  // Local files must lie in one of these directories, also behind links.
  std::vector<std::string> locations;
  RecordFormat format = RecordFormat::kText;
  bool filtered = false;             // else the bytes of the sources are given as they are
  std::vector<TypedColumn> columns;  // of the table
  std::vector<size_t> given;         // ascending indexes of columns
  std::vector<Mask> masks;           // of these
  std::string rows;
  std::map<std::string, std::string> environment;  // credentials of its sources

  bool operator==(const GateTable&) const = default;
};

struct GatePlan {
  std::string address = "127.0.0.1";  // numeric, to listen at
  uint16_t port = 0;
  std::string token;
  std::string hash_key;
  std::string scratch;  // directory for the filtered records; they have no name in it
  std::string refusal;  // a sentence that answers all requests; the rest then does not count
  std::vector<GateTable> tables;

  bool operator==(const GatePlan&) const = default;
};

json::object ToJson(const GatePlan& plan);
// InvalidArgument names the field.
Result<GatePlan> GatePlanFromJson(const json::object& object);

}  // namespace shoal::data
