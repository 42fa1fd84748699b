#include "api/server/followers.h"

#include <utility>

#include "base/log.h"
#include "base/mutex.h"

namespace shoal::api {

Followers::Followers(FollowersOptions options) : options_(std::move(options)) {
  sources_.store = options_.store;
  sources_.home = options_.home;
  sources_.loop = &loop_;
  sources_.pump_later = [this](const std::string& job, Duration delay) {
    loop_.After(delay, [this, job] { PumpJob(job); });
  };
}

Result<std::unique_ptr<Followers>> Followers::Start(FollowersOptions options) {
  std::unique_ptr<Followers> followers(new Followers(std::move(options)));
  TRY(followers->Watch());
  Followers* const self = followers.get();
  followers->thread_ = std::thread([self] {
    self->Tick();
    self->loop_.Run();
    self->followers_.clear();
    self->logs_.clear();
  });
  return followers;
}

Status Followers::Watch() {
  TRY_ASSIGN(watcher_, options_.store->Watch([this] { loop_.Post([this] { OnStored(); }); }));
  if (options_.supervisor == nullptr) return Status::Ok();
  controller::JobsObserver observer;
  // Called on the supervisor's thread.
  observer.on_event = [this](const std::string& id, const rendezvous::JobEvent& event) {
    {
      const MutexLock lock(mu_);
      if (!jobs_.contains(id)) return;
    }
    OnLive(id, "live", rendezvous::EventToJson(event));
  };
  observer.on_note = [this](const std::string& id, const std::string& text) {
    OnLive(id, "note", json::object{{"text", text}});
  };
  // The end of a job is stored before its resources are removed.
  observer.on_end = [this](const std::string& id, const controller::JobRecord&) {
    loop_.Post([this, id] { PumpJob(id); });
  };
  observation_ = options_.supervisor->Observe(std::move(observer));
  return Status::Ok();
}

Followers::~Followers() {
  observation_.reset();
  watcher_.reset();
  loop_.Stop();
  if (thread_.joinable()) thread_.join();
}

Followers::Id Followers::AddJob(JobFollowRequest request, const Principal& principal,
                                std::shared_ptr<Sink> sink) {
  return Add(MakeJobFollower(sources_, std::move(request), std::move(sink)), principal);
}

Followers::Id Followers::AddEvents(EventsFollowRequest request, std::shared_ptr<Sink> sink) {
  const Principal principal = request.principal;
  return Add(MakeEventsFollower(sources_, std::move(request), std::move(sink)), principal);
}

Followers::Id Followers::Add(std::unique_ptr<Follower> follower, const Principal& principal) {
  Id id = 0;
  {
    const MutexLock lock(mu_);
    if (count_ >= kMax) return 0;
    ++count_;
    id = next_++;
    jobs_.insert(follower->job());
  }
  // Callbacks of the loop are copyable.
  auto entry = std::make_shared<Entry>(Entry{std::move(follower), principal});
  loop_.Post([this, id, entry] { Insert(id, std::move(*entry)); });
  return id;
}

void Followers::Insert(Id id, Entry entry) {
  const std::string job = entry.follower->job();
  if (entry.follower->wants_logs()) WatchLogs(job);
  by_job_.emplace(job, id);
  followers_.emplace(id, std::move(entry));
  PumpAll({id});
}

void Followers::Erase(Id id) {
  const auto found = followers_.find(id);
  if (found == followers_.end()) return;
  const std::string job = found->second.follower->job();
  if (found->second.follower->wants_logs()) {
    const auto watched = logs_.find(job);
    if (watched != logs_.end() && --watched->second.users == 0) logs_.erase(watched);
  }
  const auto [first, last] = by_job_.equal_range(job);
  for (auto at = first; at != last; ++at) {
    if (at->second != id) continue;
    by_job_.erase(at);
    break;
  }
  followers_.erase(found);
  const MutexLock lock(mu_);
  --count_;
  jobs_.erase(jobs_.find(job));
}

void Followers::Wake(Id id) {
  loop_.Post([this, id] { PumpAll({id}); });
}

void Followers::Remove(Id id) {
  loop_.Post([this, id] { Erase(id); });
}

void Followers::Later(Duration delay, std::function<void()> fn) {
  loop_.Post([this, delay, fn = std::move(fn)] { loop_.After(delay, fn); });
}

void Followers::FinishAll() {
  loop_.Post([this] {
    std::vector<Id> ids;
    for (auto& [id, entry] : followers_) {
      entry.follower->sink().Finish();
      ids.push_back(id);
    }
    for (const Id id : ids) Erase(id);
  });
}

size_t Followers::count() const {
  const MutexLock lock(mu_);
  return count_;
}

void Followers::PumpAll(const std::vector<Id>& ids) {
  for (const Id id : ids) {
    const auto found = followers_.find(id);
    if (found != followers_.end() && !found->second.follower->Pump()) Erase(id);
  }
}

std::vector<Followers::Id> Followers::OfJob(const std::string& job) const {
  std::vector<Id> ids;
  const auto [first, last] = by_job_.equal_range(job);
  for (auto at = first; at != last; ++at) ids.push_back(at->second);
  return ids;
}

void Followers::PumpJob(const std::string& job) { PumpAll(OfJob(job)); }

void Followers::OnStored() {
  std::vector<Id> ids;
  for (auto& [id, entry] : followers_) {
    entry.follower->OnStored();
    ids.push_back(id);
  }
  PumpAll(ids);
}

void Followers::OnLog(const std::string& job) {
  const std::vector<Id> ids = OfJob(job);
  for (const Id id : ids) followers_.at(id).follower->OnLog();
  PumpAll(ids);
}

void Followers::OnLive(const std::string& job, const std::string& event, const json::object& data) {
  {
    const MutexLock lock(mu_);
    if (!jobs_.contains(job)) return;
  }
  loop_.Post([this, job, event, data] {
    for (const Id id : OfJob(job)) followers_.at(id).follower->OnLive(event, data);
  });
}

void Followers::WatchLogs(const std::string& job) {
  WatchedLogs& watched = logs_[job];
  if (++watched.users > 1) return;
  const controller::LogStore store(options_.home.job_dir(job));
  std::map<controller::LogKey, int64_t> ends;
  const auto present = store.List();
  for (const auto& log : present.ok() ? *present : std::vector<controller::LogInfo>{})
    ends[log.key] = log.bytes;
  // Followers read the bytes themselves, each from its own position.
  auto follower = store.Follow(
      &loop_, {}, std::move(ends),
      [this, job](const controller::LogKey&, int64_t, std::string_view) { OnLog(job); });
  if (follower.ok()) {
    watched.follower = std::move(*follower);
  } else {
    LogWarning("the logs of {} cannot be followed: {}", job, follower.status().message());
  }
}

void Followers::Tick() {
  loop_.After(kPing, [this] {
    std::vector<Id> gone;
    for (auto& [id, entry] : followers_) {
      const bool valid = !options_.still_valid || options_.still_valid(entry.principal);
      if (!valid) entry.follower->sink().Refuse();
      if (!valid || !entry.follower->sink().Ping()) gone.push_back(id);
    }
    for (const Id id : gone) Erase(id);
    Tick();
  });
}

}  // namespace shoal::api
