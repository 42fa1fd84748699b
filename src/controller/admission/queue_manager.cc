#include "controller/admission/queue_manager.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "base/mutex.h"
#include "controller/admission/job_admitter.h"
#include "controller/store/records.h"
#include "queue/status/queue_status.h"
#include "queue/why/forecast.h"

namespace shoal::controller {
namespace {

// Records of the modes that operators have set, by queue.
constexpr const char* kModes = "queue-mode";
constexpr size_t kNamed = 5;   // jobs in a message
constexpr int kLearnt = 1000;  // ended jobs whose run times are learnt at the start

bool TakesJobs(const queue::Policy& policy, const std::string& name) {
  const auto is = [&](const queue::QueueSpec& queue) { return queue.name == name; };
  const auto below = [&](const queue::QueueSpec& queue) { return queue.parent == name; };
  return std::ranges::any_of(policy.queues, is) && std::ranges::none_of(policy.queues, below);
}

const queue::QueueSpec* FindQueue(const queue::Policy& policy, const std::string& name) {
  const auto found = std::ranges::find(policy.queues, name, &queue::QueueSpec::name);
  return found == policy.queues.end() ? nullptr : &*found;
}

std::string LeafNames(const queue::Policy& policy) {
  std::string names;
  for (const queue::QueueSpec& queue : policy.queues)
    if (TakesJobs(policy, queue.name)) names += (names.empty() ? "" : ", ") + queue.name;
  return names;
}

}  // namespace

Status CheckStranded(const std::vector<JobRecord>& jobs, const queue::Policy& old,
                     const queue::Policy& next) {
  std::string stranded;
  size_t count = 0;
  for (const JobRecord& job : jobs) {
    const std::string queue = GetStringOr(job.job, "queue", "");
    if (!TakesJobs(old, queue) || TakesJobs(next, queue) || ++count > kNamed) continue;
    stranded +=
        (stranded.empty() ? "" : ", ") + job.name + " (" + job.id + ", queue '" + queue + "')";
  }
  if (count == 0) return Status::Ok();
  if (count > kNamed) stranded += " and " + std::to_string(count - kNamed) + " more";
  return FailedPrecondition("the policy would strand jobs: " + stranded +
                            "; keep their queues with `mode: hold` until they have ended, or stop "
                            "them");
}

Status QueueManager::Load(std::optional<queue::Policy> file) {
  QueueModes modes;
  std::string after;
  do {
    TRY_ASSIGN(const RecordPage page, options_.store->records().List(kModes, "", after, 1000));
    for (const Record& record : page.records) {
      const auto mode = queue::ParseQueueMode(GetStringOr(record.body, "mode", ""));
      if (mode) modes[record.key] = *mode;
    }
    after = page.next;
  } while (!after.empty());
  const MutexLock lock(mu_);
  file_ = std::move(file);
  modes_ = std::move(modes);
  return Status::Ok();
}

void QueueManager::LearnPast() {
  options_.store_threads->Execute([this] {
    JobFilter succeeded;
    succeeded.states = {JobState::kSucceeded};
    const Result<JobPage> page = options_.store->ListPage(succeeded, "", kLearnt);
    if (!page.ok()) return LogWarning("run times are not learnt: {}", page.status().message());
    std::vector<JobRecord> ended;
    for (auto job = page->jobs.rbegin(); job != page->jobs.rend(); ++job) {
      const auto events = options_.store->ReadEvents(job->id, 0, INT_MAX);
      const auto paused = [](const Event& event) {
        return event.type == job::NameOf(JobState::kSuspended);
      };
      if (!events.ok() || std::ranges::any_of(*events, paused)) continue;
      JobRecord record;
      record.name = job->name;
      record.state = job->state;
      record.engine = job->engine;
      record.team = job->team;
      record.user = job->user;
      record.started = job->started;
      record.ended = job->ended;
      ended.push_back(std::move(record));
    }
    options_.loop->Post([this, ended] {
      if (admitter_ == nullptr) return;
      for (const JobRecord& job : ended) admitter_->Learn(job, true);
      admitter_->ExpectAll();
    });
  });
}

void QueueManager::Try(const JobRecord& record, const job::Job& job,
                       std::function<void(const Result<queue::SubmissionTrial>&)> done) const {
  options_.loop->Post([this, record, job, done = std::move(done)] {
    if (admitter_ == nullptr) return done(Unavailable("the server is ending"));
    admitter_->Try(record, job, done);
  });
}

std::optional<queue::Policy> QueueManager::policy() const {
  const MutexLock lock(mu_);
  return file_;
}

QueueModes QueueManager::modes() const {
  const MutexLock lock(mu_);
  return modes_;
}

Status QueueManager::CheckQueue(const job::Job& job) const {
  if (job.queue == job::Job().queue) return Status::Ok();
  const MutexLock lock(mu_);
  if (!file_)
    return InvalidArgument("queue: got " + job.queue +
                           ", but this server has one queue; an administrator makes others with "
                           "`shoal server --queues FILE`");
  if (TakesJobs(*file_, job.queue)) return Status::Ok();
  return InvalidArgument("queue: got " + job.queue + ", expected one of " + LeafNames(*file_));
}

void QueueManager::Replace(queue::Policy policy, Done done) {
  options_.store_threads->Execute([this, policy = std::move(policy), done = std::move(done)] {
    const auto check = [&]() -> Status {
      const std::optional<queue::Policy> old = this->policy();
      if (!old)
        return FailedPrecondition(
            "this server has no policy file; start it with `shoal server --queues FILE`");
      // Jobs that are suspended are not in the scheduler, which checks the others.
      TRY_ASSIGN(std::vector<JobRecord> jobs,
                 options_.store->ListJobs({.ended = false, .limit = INT_MAX}));
      std::ranges::reverse(jobs);  // the oldest first
      return CheckStranded(jobs, *old, policy);
    };
    options_.loop->Post([this, policy, done, checked = check()] { Apply(policy, checked, done); });
  });
}

void QueueManager::Apply(queue::Policy policy, const Status& checked, const Done& done) {
  if (admitter_ == nullptr) return done(Unavailable("the server is ending"));
  if (!checked.ok()) return done(checked);
  const Status set = admitter_->SetPolicy(policy, modes());
  if (!set.ok()) return done(set);
  {
    const MutexLock lock(mu_);
    file_ = std::move(policy);
  }
  done(set);
}

Status QueueManager::CheckMode(const std::string& name, queue::QueueMode mode) const {
  const queue::QuotaTree& tree = admitter_->scheduler().state().tree();
  const queue::NodeIndex index = tree.FindNode(name);
  const MutexLock lock(mu_);
  const bool open = mode == queue::QueueMode::kOpen;
  if (index == queue::kNoIndex) {
    if (open && modes_.contains(name)) return Status::Ok();
    return NotFound("there is no queue '" + name + "'; `shoal queue` lists them");
  }
  const queue::QuotaTree::Node& node = tree.node(index);
  if (!open || modes_.contains(name) || node.spec.mode == queue::QueueMode::kOpen)
    return Status::Ok();
  const queue::QueueSpec* const own = file_ ? FindQueue(*file_, name) : nullptr;
  if (own != nullptr && own->mode != queue::QueueMode::kOpen)
    return FailedPrecondition("queue " + name + " has `mode: " + queue::NameOf(own->mode) +
                              "` in the policy file; change it there, then `shoal queue reload`");
  return FailedPrecondition("queue " + name + " is on hold because " + node.spec.parent +
                            " is, the queue above it; resume that one");
}

void QueueManager::SetMode(const std::string& name, queue::QueueMode mode, const std::string& by,
                           Done done) {
  const auto apply = [this, name, mode, done](const Status& stored) {
    if (admitter_ == nullptr) return done(Unavailable("the server is ending"));
    if (!stored.ok()) return done(stored);
    {
      const MutexLock lock(mu_);
      modes_.erase(name);
      if (mode != queue::QueueMode::kOpen) modes_[name] = mode;
    }
    done(admitter_->SetPolicy(policy(), modes()));
  };
  options_.loop->Post([this, name, mode, by, done, apply] {
    if (admitter_ == nullptr) return done(Unavailable("the server is ending"));
    if (const Status allowed = CheckMode(name, mode); !allowed.ok()) return done(allowed);
    options_.store_threads->Execute([this, name, mode, by, apply] {
      Records& records = options_.store->records();
      const WallTime now = options_.clock->Wall();
      Status stored;
      if (mode == queue::QueueMode::kOpen) {
        stored = records.Delete(kModes, name, kAnyVersion, now);
        if (stored.code() == Code::kNotFound) stored = Status::Ok();
      } else {
        stored =
            records.Put(kModes, name, {{"mode", queue::NameOf(mode)}, {"by", by}}, kAnyVersion, now)
                .status();
      }
      options_.loop->Post([apply, stored] { apply(stored); });
    });
  });
}

void QueueManager::Report(const queue::Viewer& viewer,
                          std::function<void(const queue::QueueReport&)> done) const {
  options_.loop->Post([this, viewer, done = std::move(done)] {
    done(admitter_ == nullptr ? queue::QueueReport()
                              : queue::ReportQueues(admitter_->scheduler(), viewer));
  });
}

}  // namespace shoal::controller
