// Decoders for Marathon's REST responses and its event stream. Input is untrusted: bounded and
// checked (tests/fuzz/marathon_fuzz.cc). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shoal::engine::marathon {

// One Mesos task of an app.
struct MesosTask {
  std::string id;
  std::string host;
  std::string state;  // TASK_RUNNING, TASK_STAGING, TASK_UNREACHABLE …
};

// The last failure of an app.
struct Failure {
  std::string task;  // Mesos task id; empty: none
  std::string host;
  std::string message;
  std::string state;
};

// An app of a Shoal job.
struct App {
  std::string id;
  std::string role;  // from its label
  std::string dir;   // the job's directory, from its label
  int instances = 0;
  std::vector<MesosTask> tasks;
  Failure last_failure;
};

// GET /v2/apps?label=…&embed=apps.tasks&embed=apps.lastTaskFailure
Result<std::vector<App>> DecodeApps(std::string_view body);

// The reason why instances of an app do not start, as a predicate.
struct PendingApp {
  std::string app;
  std::string reason;
};
// GET /v2/queue
Result<std::vector<PendingApp>> DecodeQueue(std::string_view body);

// The conflicting deployments in the body of a 409; empty if it names none.
std::vector<std::string> DecodeConflict(std::string_view body);
// The deployment id in the response to a change; empty if there is none.
std::string DecodeDeployment(std::string_view body);
// GET /v2/deployments: ids of the running deployments.
Result<std::vector<std::string>> DecodeDeployments(std::string_view body);

// The message of an error response, as one line.
std::string DecodeErrorMessage(std::string_view body);

// GET /v2/info: URL of the Mesos leader; empty if it is missing.
Result<std::string> DecodeMesosUrl(std::string_view body);

// Total resources of the Mesos cluster.
struct ClusterResources {
  double cpus = 0;
  double memory_mb = 0;
  double gpus = 0;
};
// GET /metrics/snapshot of Mesos.
Result<ClusterResources> DecodeClusterResources(std::string_view body);

// An event of Marathon's event stream; fields that it does not have are empty.
struct Event {
  std::string type;  // status_update_event, deployment_success …
  std::string app;
  std::string task;
  std::string status;
  std::string message;
  std::string host;
};

// Incremental parser of server-sent events. Plain value.
class ServerSentEventParser {
 public:
  // Appends the events that are complete. An event over 1 MiB is an error; an event that is not
  // Marathon's JSON is skipped.
  Status Feed(std::string_view bytes, std::vector<Event>* events);

 private:
  void EndLine(std::string_view line, std::vector<Event>* events);
  std::string line_;
  std::string data_;
};

}  // namespace shoal::engine::marathon
