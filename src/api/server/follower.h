// A follower delivers events to one sink: of one job (job_follower.cc) or of all jobs that a user
// may see (events_follower.cc). Followers (followers.h) owns them and wakes them; everything here
// runs on its loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "api/people/principal.h"
#include "api/server/sink.h"
#include "base/json.h"
#include "controller/files/log_store.h"
#include "controller/files/state_home.h"
#include "controller/store/store.h"
#include "net/event_loop.h"

namespace shoal::api {

class Follower {
 public:
  virtual ~Follower() = default;
  // The job that it follows; empty: all jobs.
  virtual const std::string& job() const = 0;
  virtual bool wants_logs() const { return false; }
  // The store has changed.
  virtual void OnStored() = 0;
  // A log of its job has grown.
  virtual void OnLog() {}
  // An event of its job that is not stored, such as progress.
  virtual void OnLive(std::string_view /*event*/, const json::value& /*data*/) {}
  // Writes what there is while the sink takes it. False when it is done, or its peer has gone.
  virtual bool Pump() = 0;
  virtual Sink& sink() = 0;
};

// What followers read from. Pointers outlive them.
struct FollowerSources {
  controller::Store* store = nullptr;
  controller::StateHome home{std::filesystem::path()};
  net::Loop* loop = nullptr;
  // Pumps all followers of a job again, after a delay.
  std::function<void(const std::string& job, Duration delay)> pump_later;
};

struct JobFollowRequest {
  std::string job;
  int64_t after = 0;  // events after this seq
  bool events = true;
  bool logs = false;
  controller::LogSelection selection;
  std::map<controller::LogKey, int64_t> from;
  int tail = -1;  // begin with the last lines of each log; -1: as `from` says
};

std::unique_ptr<Follower> MakeJobFollower(const FollowerSources& sources, JobFollowRequest request,
                                          std::shared_ptr<Sink> sink);

struct EventsFollowRequest {
  int64_t after = 0;  // position among the events of all jobs
  std::string team;   // empty: all of the user's
  Principal principal;
};

std::unique_ptr<Follower> MakeEventsFollower(const FollowerSources& sources,
                                             EventsFollowRequest request,
                                             std::shared_ptr<Sink> sink);

}  // namespace shoal::api
