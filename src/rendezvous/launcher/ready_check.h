// Looks, again and again, whether a task's program serves: takes connections, answers a GET, or
// lets a command succeed. Used by launcher.cc for a role's `ready`.
//
// Belongs to the loop's thread, which must be the main one: commands die with the thread that
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
  // kTcp, kHttp: where; each is tried in turn, as a program may listen at one of them only.
  std::vector<std::string> hosts;  // numeric IPv4 or IPv6
  uint16_t port = 0;
  // kCommand: what the command finds, as "NAME=value", and where it runs.
  std::vector<std::string> env;
  std::string work_dir;
  std::string job_id;
  std::string name;  // unique within the job, of the command's control group
  host::Isolation isolation;
};

class ReadyCheck {
 public:
  // Begins at once; tries come quickly at first, then every `how.every`. One of the two is called,
  // once, unless it is destroyed before; it may be destroyed in either. `on_timeout` gets what the
  // last try met: "nothing takes connections at port 4711". With kLog nothing is tried: who sees
  // the line destroys it.
  static std::unique_ptr<ReadyCheck> Start(net::Loop* loop, ReadyCheckSpec spec,
                                           std::function<void()> on_ready,
                                           std::function<void(const std::string&)> on_timeout);
  // Kills a command under way.
  virtual ~ReadyCheck() = default;
};

}  // namespace shoal::rendezvous
