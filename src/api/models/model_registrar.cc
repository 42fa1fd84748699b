#include "api/models/model_registrar.h"

#include <filesystem>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/log.h"
#include "base/mutex.h"
#include "data/objects/object_uri.h"
#include "job/spec/json.h"
#include "serving/registry/model_registry.h"

namespace shoal::api {
namespace {

namespace fs = std::filesystem;
using controller::JobRecord;

constexpr const char* kKind = "model-registrar";
constexpr const char* kKey = "position";
constexpr int kEventsAtOnce = 256;
constexpr int64_t kUnsavedPositions = 10'000;
constexpr Duration kPause = std::chrono::seconds(5);  // after the store could not be read

// The model of a job, if a version of it is to be made.
std::optional<std::string> ModelOf(const JobRecord& record) {
  if (record.state != job::JobState::kSucceeded || record.team.empty()) return std::nullopt;
  const json::object* const outputs = FindObject(record.job, "outputs");
  if (outputs == nullptr) return std::nullopt;
  std::string model = GetStringOr(*outputs, "model", "");
  if (model.empty()) return std::nullopt;
  const Result<job::Job> job = job::FromJson(record.job);
  if (!job.ok() || job->learn.contains("fold")) return std::nullopt;  // a fold only measures
  return model;
}

class Registrar final : public ModelRegistrar {
 public:
  explicit Registrar(ModelRegistrarOptions options) : options_(std::move(options)) {}
  ~Registrar() override {
    watcher_.reset();
    {
      MutexLock lock(mu_);
      stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  Status Begin() {
    TRY_ASSIGN(position_, ReadPosition());
    saved_ = position_;
    TRY_ASSIGN(watcher_, options_.store->Watch([this] { Wake(); }));
    thread_ = std::thread([this] { Run(); });
    return Status::Ok();
  }

 private:
  Result<int64_t> ReadPosition() {
    const auto record = options_.store->records().Get(kKind, kKey);
    if (record.ok()) return GetIntOr(record->body, "position", 0);
    if (record.status().code() != Code::kNotFound) return record.status();
    TRY_ASSIGN(position_, options_.store->LastPosition());
    TRY(Save());
    return position_;
  }

  Status Save() {
    TRY(options_.store->records()
            .Put(kKind, kKey, {{"position", position_}}, controller::kAnyVersion,
                 options_.clock->Wall())
            .status());
    saved_ = position_;
    return Status::Ok();
  }

  void Wake() {
    {
      MutexLock lock(mu_);
      woken_ = true;
    }
    changed_.notify_all();
  }

  bool stopping() {
    MutexLock lock(mu_);
    return stopping_;
  }

  // Waits for a change; with `limit` no longer than that. False at the end.
  bool Wait(std::optional<Duration> limit) {
    MutexLock lock(mu_);
    const auto ready = [this]() REQUIRES(mu_) { return woken_ || stopping_; };
    if (limit) {
      (void)changed_.wait_for(lock, *limit, [this]() REQUIRES(mu_) { return stopping_; });
    } else {
      changed_.wait(lock, ready);
    }
    woken_ = false;
    return !stopping_;
  }

  void Run() {
    std::optional<Duration> pause;
    do {
      const Status read = ReadOn();
      pause.reset();
      if (read.ok()) continue;
      LogWarning("models of jobs that have ended are not registered: {}", read.message());
      pause = kPause;
    } while (Wait(pause));
    (void)Save();
  }

  Status ReadOn() {
    for (;;) {
      TRY_ASSIGN(const auto events, options_.store->ReadAllEvents(position_, kEventsAtOnce));
      if (events.empty()) return Status::Ok();
      for (const controller::StoredEvent& stored : events) {
        if (stopping()) return Status::Ok();
        const bool registered = stored.event.type == "ended" && OnEnded(stored.job);
        position_ = stored.position;
        if (registered || position_ - saved_ > kUnsavedPositions) TRY(Save());
      }
    }
  }

  // Whether there was a model.
  bool OnEnded(const std::string& id) {
    const auto record = options_.store->GetJob(id);
    if (!record.ok()) return false;  // removed meanwhile
    const auto model = ModelOf(*record);
    if (!model) return false;
    const std::string name = serving::NameForPath(*model);
    const auto added = Register(*record, name, *model);
    if (added.status().code() == Code::kAlreadyExists) return true;
    Note(*record,
         added.ok()
             ? "the registry keeps the model as " + name + "@" + std::to_string(added->number)
             : "the registry has no version of the model: " + added.status().message() +
                   "; `shoal models import` adds one");
    if (added.ok()) Audit(*record, name, added->number);
    return true;
  }

  Result<serving::ModelVersion> Register(const JobRecord& record, const std::string& name,
                                         const std::string& model) {
    if (data::IsRemoteUri(model))
      return FailedPrecondition(model + " is in a store, for which the server has no credentials");
    TRY_ASSIGN(const job::Job job, job::FromJson(record.job));
    const std::string kind = options_.engines->KindOf(record.engine);
    if (!controller::ReadsLocalPaths(kind, job))
      return FailedPrecondition(model + " is not on the server's machine");
    TRY_ASSIGN(serving::ModelRegistry* const models, options_.models->Of(record.team));
    const fs::path job_dir = options_.home.job_dir(record.id);
    serving::SourceAccess access;
    access.follow_links = false;
    // A program in a container can put links in the path to where it may not read itself.
    access.trusts_path = kind == "local" || kind == "slurm";
    access.rights_of = job_dir;
    return models->AddOnce(name, model, {.by = record.user, .job = record.id, .source = model},
                           access);
  }

  void Note(const JobRecord& record, const std::string& text) {
    const controller::Event note = controller::NoteEvent(options_.clock->Wall(), text);
    const Status noted =
        options_.store->Append(record.id, {&note, 1}, controller::Durability::kWritten);
    if (!noted.ok()) LogWarning("job {}: {}", record.id, text);
  }

  void Audit(const JobRecord& record, const std::string& name, uint64_t version) {
    controller::AuditEntry entry;
    entry.time = options_.clock->Wall();
    entry.actor = record.user;
    entry.team = record.team;
    entry.action = "addModelVersion";
    entry.object = name + "@" + std::to_string(version);
    entry.detail = {{"by", "the end of the job"}, {"job", record.id}};
    const Status written = options_.store->audit().Append({&entry, 1});
    if (!written.ok()) LogError("the audit log cannot be written: {}", written.message());
  }

  const ModelRegistrarOptions options_;
  int64_t position_ = 0;  // of the thread, as is the next
  int64_t saved_ = 0;
  Mutex mu_;
  CondVar changed_;
  bool woken_ GUARDED_BY(mu_) = true;
  bool stopping_ GUARDED_BY(mu_) = false;
  std::unique_ptr<controller::Store::Watcher> watcher_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<ModelRegistrar>> ModelRegistrar::Start(ModelRegistrarOptions options) {
  auto registrar = std::make_unique<Registrar>(std::move(options));
  TRY(registrar->Begin());
  return std::unique_ptr<ModelRegistrar>(std::move(registrar));
}

}  // namespace shoal::api
