#include "engine/marathon/marathon_job.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/log.h"
#include "engine/marathon/marathon_helper.h"
#include "engine/tasks/job_files.h"
#include "engine/tasks/task_json.h"

namespace shoal::engine::marathon {
namespace {

namespace fs = std::filesystem;

bool Runs(TaskPhase phase) { return phase == TaskPhase::kStarting || phase == TaskPhase::kRunning; }

fs::path SettingsPath(const std::string& job_dir) { return EngineDir(job_dir) / "marathon.json"; }

}  // namespace

job::Marathon ReadSettings(const std::string& job_dir) {
  constexpr size_t kMaxFile = 64 << 10;
  job::Marathon settings;
  if (job_dir.empty()) return settings;
  const auto text = ReadFile(SettingsPath(job_dir), kMaxFile);
  if (!text.ok()) return settings;
  const auto object = ParseJsonObject(*text);
  if (!object.ok()) return settings;
  settings.url = GetStringOr(*object, "url", "");
  settings.authorities = GetStringOr(*object, "authorities", "");
  return settings;
}

Result<std::unique_ptr<MarathonJob>> MarathonJob::Make(const std::string& id,
                                                       const std::string& dir) {
  std::unique_ptr<MarathonJob> job(new MarathonJob(id, dir));
  TRY(MakeDirectories(EngineDir(dir), 0700));
  job->RemoveRecords();
  TRY(MakeDirectories(SlotsDir(dir), 0700));
  return job;
}

Result<std::unique_ptr<MarathonJob>> MarathonJob::Find(const std::string& id,
                                                       const std::string& dir) {
  std::unique_ptr<MarathonJob> job(new MarathonJob(id, dir));
  TRY_ASSIGN(job->desired_state_, ReadDesiredState(dir));
  if (job->desired_state_.job_id != id)
    return DataLoss(DesiredStatePath(dir).string() + " is of the job " +
                    job->desired_state_.job_id);
  DesiredJob desired{id, dir, {}};
  for (const AgentTask& task : job->desired_state_.tasks) {
    Slot& place = job->SlotOf({task.task.role, task.task.index});
    place.revision = task.revision;
    place.named = true;
    desired.tasks.push_back(task.task);
  }
  job->needs_ = RoleRequirements(desired);
  for (const auto& [role, need] : job->needs_) job->instances_[role] = need.instances;
  (void)job->ReadEvents();
  return job;
}

MarathonJob::Slot& MarathonJob::SlotOf(const Key& key) {
  return places_.try_emplace(key, SlotPath(dir_, key.first, key.second)).first->second;
}

Status MarathonJob::WriteDesired(const DesiredJob& desired, DesiredState rest) {
  rest.job_id = id_;
  rest.revision = desired_state_.revision + 1;
  std::set<Key> named;
  for (const DesiredTask& task : desired.tasks) {
    const Key key{task.role, task.index};
    const bool known = places_.contains(key);
    Slot& place = SlotOf(key);
    if (known && !place.named) ++place.revision;
    named.insert(key);
    rest.tasks.push_back({task, place.revision});
  }
  for (auto& [key, place] : places_) place.named = named.contains(key);
  for (auto& [role, need] : needs_) need.instances = 0;
  for (const auto& [role, need] : RoleRequirements(desired)) {
    needs_[role] = need;
    instances_[role] = std::max(instances_[role], need.instances);
  }
  settings_ = desired;
  settings_.tasks.clear();
  desired_state_ = std::move(rest);
  const json::object place{{"version", 1},
                           {"url", settings_.marathon.url},
                           {"authorities", settings_.marathon.authorities}};
  TRY(WriteFileAtomically(SettingsPath(dir_), ToText(place) + "\n", 0600, false));
  return WriteDesiredState(dir_, desired_state_);
}

Status MarathonJob::WriteStop(std::chrono::milliseconds grace) {
  desired_state_.stop = true;
  desired_state_.grace = grace;
  desired_state_.tasks.clear();
  ++desired_state_.revision;
  return WriteDesiredState(dir_, desired_state_);
}

std::vector<TaskEvent> MarathonJob::ReadEvents() {
  std::vector<TaskEvent> events;
  for (auto& [key, place] : places_) {
    auto lines = place.reader.Read();
    if (!lines.ok()) {
      LogWarning("job {}: {}", id_, lines.status().message());
      continue;
    }
    for (const AgentEvent& line : *lines) Take(line, key, &place, &events);
  }
  return events;
}

void MarathonJob::Take(const AgentEvent& line, const Key& key, Slot* place,
                       std::vector<TaskEvent>* events) {
  const TaskEvent& told = line.event;
  if (line.kind != EventKind::kTask || told.role != key.first || told.index != key.second) return;
  mesos_tasks_.insert(line.node);
  // The loss was already reported by Marathon, or the end by a stop. A task on an unreachable agent
  // may end later by itself; then it is not started again, and its end is reported.
  const bool cut_off = place->seen && place->seen->phase == TaskPhase::kLost &&
                       place->seen->mesos_task == line.node && told.phase == TaskPhase::kEnded;
  const bool known = place->seen && place->seen->incarnation == told.incarnation &&
                     !Runs(place->seen->phase) && !cut_off;
  place->seen = Seen{told.incarnation, told.phase, line.node};
  if (known && told.phase != TaskPhase::kRefused) return;
  events->push_back(told);
  events->back().job_id = id_;
}

std::map<MarathonJob::Key, std::string> MarathonJob::Running() const {
  std::map<Key, std::string> running;
  for (const auto& [key, place] : places_) {
    if (place.seen && Runs(place.seen->phase)) running[key] = place.seen->mesos_task;
  }
  return running;
}

TaskEvent MarathonJob::EventOf(const Key& key, const Slot& place, const std::string& reason) const {
  const Seen seen = place.seen.value_or(Seen{});
  TaskEvent event{id_, key.first, key.second, seen.incarnation, seen.phase, {}};
  event.end.reason = reason;
  return event;
}

std::vector<TaskEvent> MarathonJob::ReconcileApps(const std::vector<App>& apps,
                                                  const std::map<Key, std::string>& running,
                                                  const std::map<std::string, Failure>& said) {
  std::vector<TaskEvent> events;
  std::set<std::string> there;
  for (const App& app : apps) {
    for (const MesosTask& task : app.tasks) there.insert(task.id);
  }
  for (const auto& [key, mesos_task] : running) {
    Slot& place = SlotOf(key);
    const bool still =
        place.seen && Runs(place.seen->phase) && place.seen->mesos_task == mesos_task;
    if (!still || there.contains(mesos_task)) continue;
    place.seen->phase = TaskPhase::kLost;
    const auto word = said.find(mesos_task);
    std::string reason = "was lost with its Mesos task " + mesos_task;
    if (word != said.end())
      reason +=
          " on " + word->second.host + ": " + word->second.state + ", " + word->second.message;
    events.push_back(EventOf(key, place, reason));
  }
  for (const App& app : apps) {
    const std::vector<TaskEvent> given_up = CountFailures(app);
    events.insert(events.end(), given_up.begin(), given_up.end());
  }
  return events;
}

std::vector<TaskEvent> MarathonJob::CountFailures(const App& app) {
  std::vector<TaskEvent> events;
  const Failure& last = app.last_failure;
  if (last.task.empty() || mesos_tasks_.contains(last.task)) return events;
  std::set<std::string>& failed = failed_[app.role];
  failed.insert(last.task);
  if (failed.size() < static_cast<size_t>(std::max(desired_state_.restart.attempts, 1)))
    return events;
  for (auto& [key, place] : places_) {
    if (key.first != app.role || place.seen || !place.named) continue;
    place.seen = Seen{0, TaskPhase::kRefused, ""};
    events.push_back(
        EventOf(key, place,
                "its Mesos tasks end before they begin, " + std::to_string(failed.size()) +
                    " times so far; the last one on " + last.host + ": " + last.message +
                    "; every agent must see the job's directory " + dir_ +
                    " and the program at the same paths; the sandbox's stderr says more"));
  }
  return events;
}

std::vector<TaskEvent> MarathonJob::ReportPendingApps(const std::vector<PendingApp>& waiting) {
  const Key coordinator{kCoordinatorRole, 0};
  const auto place = places_.find(coordinator);
  if (place == places_.end()) return {};
  const std::string group = GroupId(settings_.marathon, id_) + "/";
  std::string why;
  for (const PendingApp& one : waiting) {
    if (!one.app.starts_with(group)) continue;
    const std::string text = one.app.substr(group.size()) + " " + one.reason;
    why += (why.empty() ? "" : "; ") + text;
  }
  if (why == waits_) return {};
  waits_ = why;
  if (why.empty() || (place->second.seen && place->second.seen->phase != TaskPhase::kStarting))
    return {};
  TaskEvent event = EventOf(coordinator, place->second, "waits in Marathon's queue: " + why);
  event.phase = TaskPhase::kStarting;
  return {event};
}

std::vector<TaskEvent> MarathonJob::MarkEnded(const std::string& reason) {
  over_ = true;
  for (auto& [key, place] : places_) {
    if (place.seen && Runs(place.seen->phase)) place.seen->phase = TaskPhase::kLost;
  }
  TaskEvent event = EventOf({kCoordinatorRole, 0}, SlotOf({kCoordinatorRole, 0}), reason);
  event.phase = TaskPhase::kRefused;
  return {event};
}

std::vector<TaskEvent> MarathonJob::EndRemaining() {
  std::vector<TaskEvent> events;
  for (auto& [key, place] : places_) {
    if (!place.seen || !Runs(place.seen->phase)) continue;
    place.seen->phase = TaskPhase::kEnded;
    events.push_back(EventOf(key, place, "was stopped with its group"));
  }
  return events;
}

void MarathonJob::RemoveRecords() const {
  std::error_code error;
  fs::remove(DesiredStatePath(dir_), error);
  fs::remove(SettingsPath(dir_), error);
  fs::remove_all(SlotsDir(dir_), error);
}

// Mesos tasks whose slots are listed, and those whose tasks have not ended yet.
std::set<std::string> MarathonJob::NeededTasks() const {
  std::set<std::string> needed;
  for (const auto& [key, place] : places_) {
    if (place.seen && (place.named || Runs(place.seen->phase)))
      needed.insert(place.seen->mesos_task);
  }
  return needed;
}

json::object MarathonJob::Group(const std::string& program) const {
  std::map<std::string, RoleRequirement> needs = needs_;
  for (auto& [role, need] : needs) need.instances = instances_.at(role);
  return MakeGroup(settings_, needs, program);
}

bool MarathonJob::IsScaledDown(const std::vector<App>& apps) const {
  for (const auto& [role, need] : needs_) {
    const auto app = std::find_if(apps.begin(), apps.end(),
                                  [&role](const App& one) { return one.role == role; });
    const int there = app == apps.end() ? 0 : app->instances;
    if (there >= need.instances) continue;
    LogWarning("job {}: another party scaled {} to {} instances; it is set to {} again", id_, role,
               there, need.instances);
    return true;
  }
  return false;
}

std::vector<std::string> MarathonJob::Surplus(const std::vector<App>& apps, bool* group_differs) {
  std::vector<std::string> surplus;
  const std::set<std::string> needed = NeededTasks();
  shrinks_ = false;
  *group_differs = IsScaledDown(apps);
  for (const App& app : apps) {
    const auto need = needs_.find(app.role);
    if (need == needs_.end()) continue;
    const int wanted = need->second.instances;
    int& sent = instances_[app.role];
    sent = std::max(wanted, std::min(sent, app.instances));
    int extra = app.instances - wanted;
    if (extra <= 0) continue;
    shrinks_ = true;
    if (app.tasks.size() <= static_cast<size_t>(wanted)) {
      sent = wanted;
      *group_differs = true;
    }
    for (const MesosTask& task : app.tasks) {
      if (extra <= 0) break;
      if (needed.contains(task.id)) continue;
      surplus.push_back(task.id);
      --extra;
    }
  }
  return surplus;
}

std::vector<TaskStatus> MarathonJob::List() const {
  std::vector<TaskStatus> list;
  for (const auto& [key, place] : places_) {
    if (!place.named) continue;
    const Seen seen = place.seen.value_or(Seen{});
    list.push_back({key.first, key.second, seen.incarnation, seen.phase, 0});
  }
  return list;
}

std::string MarathonJob::MesosTaskOf(const std::string& role, int index) const {
  const auto place = places_.find({role, index});
  if (place == places_.end() || !place->second.seen ||
      place->second.seen->phase != TaskPhase::kRunning)
    return "";
  return place->second.seen->mesos_task;
}

bool MarathonJob::AnyRunning() const {
  return std::any_of(places_.begin(), places_.end(), [](const auto& entry) {
    return entry.second.seen && Runs(entry.second.seen->phase);
  });
}

bool MarathonJob::Waits() const {
  return shrinks_ || std::any_of(places_.begin(), places_.end(), [](const auto& entry) {
           const Slot& place = entry.second;
           const bool runs = place.seen && Runs(place.seen->phase);
           return place.named ? !place.seen || place.seen->phase == TaskPhase::kLost : runs;
         });
}

}  // namespace shoal::engine::marathon
