// The parameter server of a training job: the body of `shoal learn server`, and the server inside
// the only worker of a job without a server role.
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

// Virtual shards of a job, by which rows are distributed to servers (ps/partition.h).
inline constexpr uint32_t kShards = 256;

// How long servers and workers poll before they block. Rows are exchanged in the background by at
// least as many processes as there are processors: longer polling would take time from training
// threads.
inline constexpr Duration kBusyPollTime = std::chrono::microseconds(5);

// Validates the roles of a job that trains on parameter servers: workers, and servers unless there
// is only one worker. InvalidArgument says what `algorithm` lacks.
Status ValidateRoles(const job::Job& job, std::string_view algorithm);

// The error for a job without outputs.model, the directory for `what`.
Status MissingOutputError(std::string_view what);

// Runs a server until task.stop. Server 0 also takes the job's checkpoints.
Status RunParameterServer(Task& task);

// Takes a checkpoint every `task.checkpoint_every` in a thread of its own, until destroyed. Failed
// checkpoints are logged. Start gives null if the job has no checkpoints.
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

// A server inside of this process. The job's members and clients must use `hub` and `members()`.
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

// A worker's client, and the in-process server if the job has no server role. Movable.
struct WorkerClient {
  std::unique_ptr<InProcessServer> server;  // may be null
  std::unique_ptr<ps::Client> client;
};

// Connects a worker. Bit s of `restarted` (not owned; must outlive the result) is set when server s
// (≥ 64: bit 63) has restarted without recent pushes. Errors as ps::Client::Connect.
Result<WorkerClient> ConnectWorker(Task& task, ps::Consistency consistency,
                                   std::atomic<uint64_t>* restarted);

}  // namespace shoal::learn
