// The parameter server's side of a training job: the body of `shoal learn server`, and the server
// inside the worker of a job that has no server role.
#pragma once

#include <atomic>
#include <memory>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "job/spec/job.h"
#include "learn/task/task.h"
#include "ps/client/client.h"
#include "ps/members.h"
#include "ps/server/server.h"
#include "ps/transport/transport.h"

namespace shoal::learn {

// Virtual shards of a job: which server has a row follows from it (ps/partition.h).
inline constexpr uint32_t kShards = 256;

// How long servers and workers poll. Rows are exchanged behind the training's back, by as many
// processes as there are processors or more: who polls for long keeps a trainer from its work.
inline constexpr Duration kBusyPollTime = std::chrono::microseconds(5);

// The roles of a job that trains on parameter servers: workers, and servers unless there is but one
// worker. InvalidArgument says what `algorithm` lacks.
Status ValidateRoles(const job::Job& job, std::string_view algorithm);

// The refusal of a job without outputs.model, the directory for its `what`.
Status MissingOutputError(std::string_view what);

// Serves until task.stop; server 0 also takes the job's checkpoints.
Status RunParameterServer(Task& task);

// Takes a checkpoint every `task.checkpoint_every` from a thread of its own, until destroyed; a
// checkpoint that fails is a line in the log. Null if the job has none.
class CheckpointTimer {
 public:
  static std::unique_ptr<CheckpointTimer> Start(const Task& task, ps::Members* members,
                                                std::shared_ptr<ps::InProcessHub> hub);
  ~CheckpointTimer();

 private:
  CheckpointTimer();
  struct State;
  std::unique_ptr<State> state_;
};

// A server of this process. Members and clients of the job must use `hub` and `members()`.
class InProcessServer {
 public:
  static Result<std::unique_ptr<InProcessServer>> Start(const Task& task);
  ps::Members& members() { return members_; }
  const std::shared_ptr<ps::InProcessHub>& hub() const { return hub_; }

 private:
  class OneServer final : public ps::Members {
   public:
    ps::MemberView Current() override { return view; }
    ps::MemberView view;
  };
  std::shared_ptr<ps::InProcessHub> hub_ = std::make_shared<ps::InProcessHub>();
  OneServer members_;
  std::unique_ptr<ps::Server> server_;
  std::unique_ptr<CheckpointTimer> timer_;
};

// A worker's client, and the server that it talks to where the job has no role for one. Movable.
struct WorkerClient {
  std::unique_ptr<InProcessServer> server;  // may be null
  std::unique_ptr<ps::Client> client;
};

// `restarted` (not owned; outlives the result) gets bit s when server s (≥ 64: bit 63) came back
// without what was pushed to it lately. Errors as ps::Client::Connect.
Result<WorkerClient> ConnectWorker(Task& task, ps::Consistency consistency,
                                   std::atomic<uint64_t>* restarted);

}  // namespace shoal::learn
