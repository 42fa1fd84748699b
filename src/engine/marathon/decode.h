// What Marathon answers, taken apart: JSON of its REST interface and its stream of events. Hostile
// bytes: bounded and checked (tests/fuzz/marathon_fuzz.cc). Pure.
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

struct Failure {
  std::string task;  // its Mesos id; empty: none
  std::string host;
  std::string message;
  std::string state;
};

struct App {
  std::string id;
  std::string role;  // by its label
  std::string dir;   // of the job, by its label
  int instances = 0;
  std::vector<MesosTask> tasks;
  Failure last_failure;
};

// GET /v2/apps?label=…&embed=apps.tasks&embed=apps.lastTaskFailure
Result<std::vector<App>> DecodeApps(std::string_view body);

// Why instances of an app do not start: a sentence without its subject.
struct PendingApp {
  std::string app;
  std::string reason;
};
// GET /v2/queue
Result<std::vector<PendingApp>> DecodeQueue(std::string_view body);

// The deployments that a change waits for, of a 409's body; empty if it names none.
std::vector<std::string> DecodeConflict(std::string_view body);
// Of the answer to a change; empty if it says none.
std::string DecodeDeployment(std::string_view body);
// GET /v2/deployments: those that run.
Result<std::vector<std::string>> DecodeDeployments(std::string_view body);

// What a bad answer says, as one line for people.
std::string DecodeErrorMessage(std::string_view body);

// GET /v2/info: where Mesos' leader shows its numbers; empty if it does not say.
Result<std::string> DecodeMesosUrl(std::string_view body);

struct ClusterResources {
  double cpus = 0;
  double memory_mb = 0;
  double gpus = 0;
};
// GET /metrics/snapshot of Mesos.
Result<ClusterResources> DecodeClusterResources(std::string_view body);

struct Event {
  std::string type;  // status_update_event, deployment_success …
  std::string app;
  std::string task;
  std::string status;
  std::string message;
  std::string host;
};

// Takes a stream of server-sent events apart. Plain value.
class ServerSentEventParser {
 public:
  // Appends the events that are whole now. An event over 1 MiB is an error; one that is no JSON of
  // Marathon's is passed over.
  Status Feed(std::string_view bytes, std::vector<Event>* events);

 private:
  void EndLine(std::string_view line, std::vector<Event>* events);
  std::string line_;
  std::string data_;
};

}  // namespace shoal::engine::marathon
