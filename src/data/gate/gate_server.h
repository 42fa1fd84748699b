// The gate of one job: opens the sources of its tables with credentials that the job's programs
// never have, and gives them what the job's user may see, over HTTP to those who know the job's
// token (gate_proof.h).
//
//     GET /DATA            {"state": "preparing"} (202), {"state": "ready", "objects": […]}, or
//                          {"state": "failed", "error": …} (409)
//     GET /DATA/OBJECT     bytes of an object, by Range; If-Match with its version: 412
//
// Where nothing is hidden the objects are those of the source, read in ranges as they are asked
// for. Filtered objects are made when the gate starts: each source is read once, in bounded memory,
// into a file without a name, so that their lengths are known and shards are exact. The same source
// gives the same bytes, so a gate that was started again goes on where the other ended.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/gate/gate_plan.h"
#include "data/objects/object.h"

namespace shoal::data {

// What a data set's sources were when the gate opened them.
struct GateSources {
  std::string data;
  std::vector<ObjectInfo> objects;  // of the sources
  uint64_t records_read = 0;        // of filtered ones
  uint64_t records_given = 0;
};

struct GateOptions {
  GatePlan plan;
  // Called on a thread of the gate when a data set is ready, or has failed. May be empty.
  std::function<void(const GateSources&)> on_ready = {};
  std::function<void(const std::string& data, const Status& why)> on_failed = {};
};

// Serves until destroyed.
class Gate {
 public:
  // FailedPrecondition if the address is taken; InvalidArgument for a wrong plan.
  static Result<std::unique_ptr<Gate>> Start(GateOptions options);
  virtual ~Gate() = default;
  virtual uint16_t port() const = 0;
};

}  // namespace shoal::data
