// Requests for another number of tasks that a coordinator has not answered yet. Used by job_run.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "controller/threads/loop_task_group.h"
#include "rendezvous/protocol/job_event.h"

namespace shoal::controller {

// Must be used on the loop's thread.
class ScaleRequests {
 public:
  using Done = std::function<void(const Status&)>;

  // `tasks` must outlive it.
  explicit ScaleRequests(LoopTaskGroup* tasks) : tasks_(tasks) {}

  // `done` is called once: with the answer, with Unavailable after 10 s, or by EndAll.
  void Add(const std::string& role, int replicas, Done done);
  // An event of the coordinator, which may answer a request.
  void ApplyEvent(const rendezvous::JobEvent& event);
  void EndAll(const Status& status);

 private:
  struct Request {
    int64_t number = 0;
    std::string role;
    int replicas = 0;
    Done done;
  };
  // Answers the first request that `matches`.
  void Answer(const std::function<bool(const Request&)>& matches, const Status& answer);

  LoopTaskGroup* const tasks_;
  std::vector<Request> requests_;
  int64_t next_ = 0;
};

}  // namespace shoal::controller
