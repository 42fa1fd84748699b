#include "api/client/remote_run.h"

#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "api/client/job_stream.h"

namespace shoal::api {
namespace {

using controller::Event;
using controller::JobRecord;
using rendezvous::JobEvent;

class RemoteRun final : public controller::JobRun {
 public:
  RemoteRun(const ApiClient* client, net::Loop* loop, JobRecord job, controller::Observer observer)
      : client_(client), loop_(loop), job_(std::move(job)), observer_(std::move(observer)) {
    JobStreamOptions options;
    options.id = job_.id;
    options.logs = static_cast<bool>(observer_.on_log);
    JobStreamCallbacks callbacks;
    callbacks.on_event = [this](const Event& event) { OnStored(event); };
    callbacks.on_live = [this](const JobEvent& event) { OnLive(event); };
    callbacks.on_log = observer_.on_log;
    callbacks.on_note = observer_.on_note;
    callbacks.on_end = [this](const Result<JobRecord>& end) { OnEnd(end); };
    stream_ = JobStream::Open(client_, loop_, std::move(options), std::move(callbacks));
  }
  ~RemoteRun() override {
    stream_.reset();
    for (std::thread& thread : requests_) thread.join();
  }

  void Drain(const std::string& /*reason*/) override { Stop(false); }
  void Kill(const std::string& /*reason*/) override { Stop(true); }

  void Suspend(const std::string& /*reason*/) override { Post("suspend", {}, AsNote()); }
  void Scale(const std::string& role, int replicas, const std::string& /*reason*/,
             std::function<void(const Status&)> done) override {
    Post("scale", {{"role", role}, {"replicas", replicas}}, std::move(done));
  }

 private:
  void Stop(bool now) { Post("stop", {{"now", now}}, AsNote()); }

  std::function<void(const Status&)> AsNote() {
    return [note = observer_.on_note](const Status& status) {
      if (!status.ok() && note) note(status.message());
    };
  }

  // Sends a command without blocking the loop; `done` is called on the loop's thread.
  void Post(const std::string& action, json::object body, std::function<void(const Status&)> done) {
    requests_.emplace_back([this, action, body = std::move(body), done = std::move(done)] {
      const Status status =
          client_
              ->CallJson("POST", "/api/v1/jobs/" + net::PercentEncode(job_.id) + "/" + action, body)
              .status();
      loop_->Post([alive = std::weak_ptr<int>(alive_), done, status] {
        if (!alive.expired()) done(status);
      });
    });
  }

  void OnStored(const Event& event) {
    (void)controller::ApplyEvent(event, &job_);
    if (event.type == "task") return OnTask(event);
    if (event.type == "note" && observer_.on_note)
      return observer_.on_note(GetStringOr(event.body, "text", ""));
    const auto state =
        event.type == "submitted" ? job::JobState::kPending : job::ParseJobState(event.type);
    if (state == job::JobState::kSuspended) return OnEnd(job_);
    if (state && observer_.on_state)
      observer_.on_state(*state, GetStringOr(event.body, "reason", ""));
  }

  // A task's state that no live event has told, since the connection was broken then.
  void OnTask(const Event& event) {
    const auto task = controller::ParseTask(event.body);
    if (!task.ok()) return;
    JobEvent live;
    live.type = JobEvent::Type::kTask;
    live.at = FormatWall(event.time);
    live.role = task->role;
    live.index = task->index;
    live.attempt = task->attempt;
    live.task_state = task->state;
    live.end = task->end;
    live.will_restart = task->will_restart;
    live.last_line = task->last_line;
    if (!Told(live) && observer_.on_event) observer_.on_event(live);
  }

  void OnLive(const JobEvent& event) {
    if (event.type == JobEvent::Type::kTask && Told(event)) return;
    if (observer_.on_event) observer_.on_event(event);
  }

  // Whether this or a later state of the task was told; remembers it.
  bool Told(const JobEvent& event) {
    const std::pair now(event.attempt, event.task_state);
    auto [at, fresh] = told_.try_emplace({event.role, event.index}, now);
    if (!fresh && now <= at->second) return true;
    at->second = now;
    return false;
  }

  void OnEnd(const Result<JobRecord>& job) {
    if (ended_) return;
    ended_ = true;
    if (job.ok()) {
      JobRecord record = *job;
      record.job = job_.job;  // not in the stream
      if (observer_.on_end) observer_.on_end(record);
      return;
    }
    if (observer_.on_failed) observer_.on_failed(job.status().code());
    JobRecord lost = job_;
    lost.state = job::JobState::kFailed;
    lost.reason = job.status().message() + "; the job goes on without this command, `shoal show " +
                  job_.id + "` tells how";
    if (observer_.on_end) observer_.on_end(lost);
  }

  const ApiClient* const client_;
  net::Loop* const loop_;
  JobRecord job_;  // as the events so far have it
  const controller::Observer observer_;
  std::map<std::pair<std::string, int>, std::pair<int, job::TaskState>> told_;
  std::unique_ptr<JobStream> stream_;
  std::vector<std::thread> requests_;
  bool ended_ = false;
  const std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // while callbacks may come
};

}  // namespace

std::unique_ptr<controller::JobRun> FollowRun(const ApiClient* client, net::Loop* loop,
                                              const JobRecord& job, controller::Observer observer) {
  return std::make_unique<RemoteRun>(client, loop, job, std::move(observer));
}

}  // namespace shoal::api
