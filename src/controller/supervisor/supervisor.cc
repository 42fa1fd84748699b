#include "controller/supervisor/supervisor.h"

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "base/log.h"
#include "controller/store/process_identity.h"
#include "job/spec/json.h"

namespace shoal::controller {
namespace {

class LoopSupervisor final : public Supervisor {
 public:
  explicit LoopSupervisor(SupervisorOptions options) : options_(std::move(options)) {
    thread_ = std::thread([this] { loop_.Run(); });
  }
  ~LoopSupervisor() override {
    loop_.Post([this] {
      runs_.clear();
      loop_.Stop();
    });
    thread_.join();
  }

  Result<std::vector<std::string>> AttachAll() override;
  Status Attach(const std::string& id) override;
  Result<std::string> Submit(const job::Job& job, const SubmitOptions& options) override;
  void Drain(const std::string& id, const std::string& reason, Done done) override;
  void Kill(const std::string& id, const std::string& reason, Done done) override;
  void Suspend(const std::string& id, const std::string& reason, Done done) override;
  void Resume(const std::string& id, Done done) override;
  void Scale(const std::string& id, const std::string& role, int replicas,
             const std::string& reason, Done done) override;
  std::unique_ptr<Observation> Observe(JobsObserver observer) override;
  std::vector<std::string> running() const override;

 private:
  class Registration;

  Result<Controller> ControllerOf(const std::string& engine, const std::filesystem::path& work_dir,
                                  JobValidation validation = {});
  void Start(const std::string& id, const Controller& controller);
  Observer ObserverOf(const std::string& id);
  // Calls `call` with the job's run on the loop's thread; NotFound if there is none.
  void WithRun(const std::string& id, Done done, std::function<void(JobRun*)> call);
  void Tell(const std::function<void(const JobsObserver&)>& call);

  const SupervisorOptions options_;
  net::Loop loop_;
  std::map<std::string, std::unique_ptr<JobRun>> runs_;  // of the loop's thread
  mutable std::mutex mu_;
  std::set<std::string> ids_;  // guarded by mu_: keys of runs_
  std::recursive_mutex observers_mu_;
  std::map<int, JobsObserver> observers_;  // guarded by observers_mu_
  int next_observer_ = 0;                  // guarded by observers_mu_
  std::thread thread_;
};

class LoopSupervisor::Registration final : public Observation {
 public:
  Registration(LoopSupervisor* owner, int number) : owner_(owner), number_(number) {}
  ~Registration() override {
    const std::lock_guard lock(owner_->observers_mu_);
    owner_->observers_.erase(number_);
  }

 private:
  LoopSupervisor* const owner_;
  const int number_;
};

std::unique_ptr<Supervisor::Observation> LoopSupervisor::Observe(JobsObserver observer) {
  const std::lock_guard lock(observers_mu_);
  observers_.emplace(next_observer_, std::move(observer));
  return std::make_unique<Registration>(this, next_observer_++);
}

void LoopSupervisor::Tell(const std::function<void(const JobsObserver&)>& call) {
  const std::lock_guard lock(observers_mu_);
  for (const auto& [number, observer] : observers_) call(observer);
}

Result<Controller> LoopSupervisor::ControllerOf(const std::string& engine,
                                                const std::filesystem::path& work_dir,
                                                JobValidation validation) {
  ControllerOptions options;
  TRY_ASSIGN(options.engine, options_.engines->Find(engine));
  options.store = options_.store;
  options.clock = options_.clock;
  options.home = options_.home;
  options.program = options_.program;
  options.work_dir = work_dir;
  options.self = options_.self;
  options.validation = std::move(validation);
  options.connect = options_.connect;
  return Controller(std::move(options));
}

Observer LoopSupervisor::ObserverOf(const std::string& id) {
  Observer observer;
  observer.on_state = [this, id](JobState state, const std::string& why) {
    Tell([&](const JobsObserver& to) {
      if (to.on_state) to.on_state(id, state, why);
    });
  };
  observer.on_event = [this, id](const rendezvous::JobEvent& event) {
    Tell([&](const JobsObserver& to) {
      if (to.on_event) to.on_event(id, event);
    });
  };
  observer.on_log = [this, id](const LogKey& key, int64_t offset, std::string_view bytes) {
    Tell([&](const JobsObserver& to) {
      if (to.on_log) to.on_log(id, key, offset, bytes);
    });
  };
  observer.on_note = [this, id](const std::string& text) {
    Tell([&](const JobsObserver& to) {
      if (to.on_note) to.on_note(id, text);
    });
  };
  observer.on_end = [this, id](const JobRecord& record) {
    Tell([&](const JobsObserver& to) {
      if (to.on_end) to.on_end(id, record);
    });
    // Not here: the run is still executing this callback.
    loop_.Post([this, id] {
      runs_.erase(id);
      const std::lock_guard lock(mu_);
      ids_.erase(id);
    });
  };
  return observer;
}

void LoopSupervisor::Start(const std::string& id, const Controller& controller) {
  {
    const std::lock_guard lock(mu_);
    ids_.insert(id);
  }
  loop_.Post([this, id, controller = controller]() mutable {
    auto run = controller.Start(&loop_, id, ObserverOf(id));
    if (run.ok()) {
      runs_[id] = std::move(*run);
      return;
    }
    LogWarning("job {}: not started: {}", id, run.status().message());
    const std::lock_guard lock(mu_);
    ids_.erase(id);
  });
}

Result<std::string> LoopSupervisor::Submit(const job::Job& job, const SubmitOptions& options) {
  job::Job whole = job;
  options_.engines->SetDefaults(options.engine, &whole);
  whole.on_controller_loss = job::OnControllerLoss::kKeep;  // it outlives this process
  TRY_ASSIGN(Controller controller,
             ControllerOf(options.engine, options.work_dir, options.validation));
  TRY_ASSIGN(std::string id, controller.Submit(whole));
  Start(id, controller);
  return id;
}

Result<std::vector<std::string>> LoopSupervisor::AttachAll() {
  TRY_ASSIGN(const std::vector<JobRecord> jobs,
             options_.store->ListJobs({.ended = false, .limit = INT32_MAX}));
  std::vector<std::string> attached;
  for (const JobRecord& job : jobs) {
    if (job.state == JobState::kSuspended || IsAlive(options_.home.root(), job.owner)) continue;
    if (const Status status = Attach(job.id); status.ok()) {
      attached.push_back(job.id);
    } else {
      LogWarning("job {}: not attached: {}", job.id, status.message());
    }
  }
  return attached;
}

Status LoopSupervisor::Attach(const std::string& id) {
  TRY_ASSIGN(const JobRecord job, options_.store->GetJob(id));
  if (job.state != JobState::kPending)
    return FailedPrecondition("job " + id + " is " + std::string(job::NameOf(job.state)));
  TRY_ASSIGN(const bool ours,
             options_.store->ClaimOwnership(id, job.owner, options_.self, options_.clock->Wall()));
  if (!ours) return FailedPrecondition("job " + id + " has another controller");
  TRY_ASSIGN(const Controller controller,
             ControllerOf(job.engine, ReadWorkDir(options_.home.job_dir(id))));
  Start(id, controller);
  return Status::Ok();
}

void LoopSupervisor::WithRun(const std::string& id, Done done, std::function<void(JobRun*)> call) {
  loop_.Post([this, id, done = std::move(done), call = std::move(call)] {
    const auto found = runs_.find(id);
    if (found == runs_.end()) return done(NotFound("no job " + id + " runs here"));
    call(found->second.get());
  });
}

void LoopSupervisor::Drain(const std::string& id, const std::string& reason, Done done) {
  WithRun(id, done, [reason, done](JobRun* run) {
    run->Drain(reason);
    done(Status::Ok());
  });
}

void LoopSupervisor::Kill(const std::string& id, const std::string& reason, Done done) {
  WithRun(id, done, [reason, done](JobRun* run) {
    run->Kill(reason);
    done(Status::Ok());
  });
}

void LoopSupervisor::Suspend(const std::string& id, const std::string& reason, Done done) {
  WithRun(id, done, [reason, done](JobRun* run) {
    run->Suspend(reason);
    done(Status::Ok());
  });
}

void LoopSupervisor::Scale(const std::string& id, const std::string& role, int replicas,
                           const std::string& reason, Done done) {
  WithRun(id, done, [role, replicas, reason, done](JobRun* run) {
    run->Scale(role, replicas, reason, done);
  });
}

void LoopSupervisor::Resume(const std::string& id, Done done) {
  const auto resume = [this, &id]() -> Status {
    TRY_ASSIGN(const JobRecord job, options_.store->GetJob(id));
    TRY_ASSIGN(Controller controller,
               ControllerOf(job.engine, ReadWorkDir(options_.home.job_dir(id))));
    TRY(controller.Resume(id));
    Start(id, controller);
    return Status::Ok();
  };
  loop_.Post([done = std::move(done), status = resume()] { done(status); });
}

std::vector<std::string> LoopSupervisor::running() const {
  const std::lock_guard lock(mu_);
  return {ids_.begin(), ids_.end()};
}

}  // namespace

Result<std::unique_ptr<Supervisor>> Supervisor::Start(SupervisorOptions options) {
  return std::unique_ptr<Supervisor>(std::make_unique<LoopSupervisor>(std::move(options)));
}

}  // namespace shoal::controller
