// Checks repeatedly whether a task's program serves: accepts connections, answers a GET, or lets a
// command succeed. Used by attempt.cc for a role's `ready`.
//
// Belongs to the loop's thread, which must be the main thread: commands die with the thread that
// started them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "host/process/isolation.h"
#include "job/spec/job.h"
#include "net/event_loop.h"

namespace shoal::rendezvous {

struct ReadyCheckSpec {
  job::Ready how;
  // kTcp, kHttp: addresses that are tried in turn, as a program may listen on one of them only.
  std::vector<std::string> hosts;  // numeric IPv4 or IPv6
  uint16_t port = 0;
  // kCommand: the command's environment, as "NAME=value", and its working directory.
  std::vector<std::string> env;
  std::string work_dir;
  std::string job_id;
  std::string name;  // unique within the job, of the command's control group
  host::Isolation isolation;
};

class ReadyCheck {
 public:
  // Begins at once; tries are frequent at first, then every `how.every`. Either callback is called
  // once, unless the check is destroyed before; the check may be destroyed in it. `on_timeout` gets
  // the outcome of the last try, for instance "nothing takes connections at port 4711". With kLog
  // nothing is tried: the owner destroys the check when it sees the line.
  static std::unique_ptr<ReadyCheck> Start(net::Loop* loop, ReadyCheckSpec spec,
                                           std::function<void()> on_ready,
                                           std::function<void(const std::string&)> on_timeout);
  // Kills a running command.
  virtual ~ReadyCheck() = default;
};

}  // namespace shoal::rendezvous
