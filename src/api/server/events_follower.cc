// The stored events of all jobs of a user's teams, in the order of their commits.

#include <utility>

#include "api/rest/job_json.h"
#include "api/server/follower.h"
#include "controller/store/cursor.h"

namespace shoal::api {
namespace {

constexpr int kEventsAtOnce = 200;

class EventsFollower final : public Follower {
 public:
  EventsFollower(const FollowerSources& sources, EventsFollowRequest request,
                 std::shared_ptr<Sink> sink)
      : sources_(sources), request_(std::move(request)), sink_(std::move(sink)) {}

  const std::string& job() const override { return all_; }
  void OnStored() override { left_ = true; }
  Sink& sink() override { return *sink_; }

  bool Pump() override {
    while (left_ && !sink_->full()) {
      const auto events = sources_.store->ReadAllEvents(request_.after, kEventsAtOnce);
      if (!events.ok()) return false;
      for (const controller::StoredEvent& event : *events) {
        request_.after = event.position;
        if (!Sees(event.team)) continue;
        if (!sink_->Write("event", Cursor(), EventToReply(event.job, event.event))) return false;
      }
      left_ = static_cast<int>(events->size()) == kEventsAtOnce;
    }
    return true;
  }

 private:
  bool Sees(const std::string& team) const {
    const bool wanted = request_.team.empty() || request_.team == team;
    return wanted && request_.principal.RoleIn(team) != Role::kNone;
  }
  std::string Cursor() const {
    return controller::FormatCursor(sources_.store->store_id(), request_.after);
  }

  const FollowerSources& sources_;
  EventsFollowRequest request_;
  const std::shared_ptr<Sink> sink_;
  const std::string all_;
  bool left_ = true;
};

}  // namespace

std::unique_ptr<Follower> MakeEventsFollower(const FollowerSources& sources,
                                             EventsFollowRequest request,
                                             std::shared_ptr<Sink> sink) {
  return std::make_unique<EventsFollower>(sources, std::move(request), std::move(sink));
}

}  // namespace shoal::api
