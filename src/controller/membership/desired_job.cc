#include "controller/membership/desired_job.h"

#include <algorithm>
#include <filesystem>

#include "controller/store/job_record.h"
#include "job/execution/plan.h"
#include "job/file/parse.h"

namespace shoal::controller {
namespace {

namespace fs = std::filesystem;

// The path, or its deepest existing parent, which can be mounted. Empty for "/" and for texts that
// are no path of this machine.
std::string ExistingPart(const std::string& path) {
  if (path.empty() || path[0] != '/') return "";
  std::error_code error;
  fs::path part(path);
  while (!fs::exists(part, error) && part.has_relative_path()) part = part.parent_path();
  return part.has_relative_path() ? part.string() : "";
}

void AddMount(engine::Mount added, std::vector<engine::Mount>* mounts) {
  if (added.source.empty()) return;
  for (const engine::Mount& mount : *mounts) {
    // The target is inside a volume, independent of this machine's files of that name.
    if (mount.source != mount.target && added.target.starts_with(mount.target + "/")) return;
    if (mount.target == added.target) return;
  }
  mounts->push_back(std::move(added));
}

engine::Mount SamePath(const std::string& path, bool read_only) { return {path, path, read_only}; }

// A model that is continued may be replaced by the output, so it gets no mount of its own below
// one.
void AddModelMount(const std::string& path, std::vector<engine::Mount>* mounts) {
  if (path.empty()) return;
  for (const engine::Mount& mount : *mounts) {
    if (mount.source == mount.target && path.starts_with(mount.target + "/")) return;
  }
  AddMount(SamePath(ExistingPart(path), true), mounts);
}

// The directory of this machine to mount so that an output is written to it: the deepest existing
// parent. "/" cannot be mounted, so the directory below it is created if no other exists.
engine::Mount MountOfOutput(const fs::path& directory) {
  const fs::path parent = directory.parent_path();
  const std::string existing = ExistingPart(parent.string());
  if (!existing.empty()) return SamePath(existing, false);
  engine::Mount mount = SamePath("/" + directory.relative_path().begin()->string(), false);
  mount.make_source = true;
  return mount;
}

// Target of a symbolic link, existing or not.
fs::path Target(fs::path path) {
  constexpr int kMostLinks = 40;  // as the kernel follows
  std::error_code error;
  for (int links = 0; links < kMostLinks && fs::is_symlink(path, error); ++links)
    path = (path.parent_path() / fs::read_symlink(path, error)).lexically_normal();
  return path;
}

// Adds the mounts of the tasks' programs. Written paths come first, so that a path that is both
// read and written stays writable.
engine::ContainerSettings MakeContainer(const job::Job& job) {
  engine::ContainerSettings container;
  container.work_dir = job.container.work_dir;
  container.user = job.container.user;
  container.pids = job.container.pids;
  container.shm_bytes = job.container.shm_bytes;
  container.own_network = job.container.own_network;
  for (const std::string& text : job.container.volumes) {
    const auto volume = job::ParseVolume(text);  // the parser has checked it
    if (!volume.ok()) continue;
    container.mounts.push_back({volume->source, volume->target, volume->read_only});
  }
  for (const auto& [name, directory] : job.outputs) {
    const fs::path path = fs::path(directory).lexically_normal();
    if (!path.is_absolute() || !path.has_relative_path()) continue;
    AddMount(MountOfOutput(path), &container.mounts);
    // Data written through a link must not stay in the container.
    const fs::path target = Target(path);
    if (target != path && target.has_relative_path())
      AddMount(MountOfOutput(target), &container.mounts);
  }
  for (const job::DataSource& data : job.data) {
    for (const std::string& source : data.sources)
      AddMount(SamePath(ExistingPart(source), true), &container.mounts);
  }
  if (const auto from = job.learn.find("from"); from != job.learn.end())
    AddModelMount(from->second.text, &container.mounts);
  container.programs = job.framework != job::Framework::kShoal;
  return container;
}

using Words = std::vector<std::string>;

void Append(const Words& more, Words* words) {
  words->insert(words->end(), more.begin(), more.end());
}

// Arguments that give a process of the job its directory, and the bootstrap files for it.
Words DirectoryWords(const DesiredJobPaths& places) {
  if (places.shared) return {"--job-dir", places.dir.string()};
  return {"--job-dir", engine::kDirPlaceholder, "--seed", engine::kBootstrapDirPlaceholder};
}

engine::DesiredTask Coordinator(const DesiredJobPaths& places) {
  engine::DesiredTask task;
  task.role = kCoordinatorRole;
  task.argv = {places.program, "coordinator"};
  Append(DirectoryWords(places), &task.argv);
  if (!places.shared)
    Append({"--listen", std::string("0.0.0.0:") + engine::kPortPlaceholder}, &task.argv);
  if (places.shared) task.work_dir = places.dir.string();
  return task;
}

engine::DesiredTask Launcher(const DesiredJobPaths& places, const job::PlannedTask& planned) {
  engine::DesiredTask task;
  task.role = planned.role;
  task.index = planned.index;
  task.argv = {places.program, "task"};
  Append(DirectoryWords(places), &task.argv);
  if (!places.shared)
    Append({"--coordinator", engine::kCoordinatorPlaceholder, "--host", engine::kHostPlaceholder},
           &task.argv);
  Append({"--role", planned.role, "--index",
          places.shared ? std::to_string(planned.index) : engine::kIndexPlaceholder,
          "--incarnation", engine::kIncarnationPlaceholder},
         &task.argv);
  task.resources = planned.resources;
  return task;
}

}  // namespace

// The coordinator is the first task; then one launcher per wanted member.
Result<engine::DesiredJob> MakeDesiredJob(const job::Job& job, const std::string& id,
                                          const DesiredJobPaths& places,
                                          const DesiredMembership& membership) {
  const std::string dir = places.dir.string();
  // Programs of a job with `files` start in their own copy of the files.
  const std::string work_dir =
      !job.files.empty() || places.work_dir.empty() ? dir : places.work_dir.string();
  const MembersByRole& members = membership.members();
  job::Job scaled = job;
  for (job::Role& role : scaled.roles) {
    const auto found = members.find(role.name);
    if (found == members.end()) continue;
    role.replicas = found->second.empty() ? 0 : *found->second.rbegin() + 1;
  }
  TRY_ASSIGN(const job::Plan plan, job::MakePlan(scaled));
  engine::DesiredJob desired;
  desired.job_id = id;
  desired.job_dir = dir;
  desired.image = job.image;
  desired.container = MakeContainer(job);
  desired.stop_grace = job.limits.stop_grace;
  desired.attended = job.on_controller_loss == job::OnControllerLoss::kStop;
  desired.slurm = job.slurm;
  desired.kubernetes = job.kubernetes;
  desired.marathon = job.marathon;
  for (const job::Role& role : job.roles) {
    if (role.elastic()) desired.max_tasks[role.name] = role.most();
    if (role.health.by != job::ReadyBy::kStart) desired.health[role.name] = role.health;
    desired.slurm_settings.emplace_back(role.name, role.slurm);
    if (role.kubernetes != job::PodSettings()) desired.pod_settings[role.name] = role.kubernetes;
  }
  if (std::all_of(job.roles.begin(), job.roles.end(),
                  [](const job::Role& role) { return role.slurm == job::SlurmSettings(); }))
    desired.slurm_settings.clear();
  desired.bootstrap_files = places.bootstrap_files;
  desired.tasks.reserve(plan.tasks.size() + 1);
  desired.tasks.push_back(Coordinator(places));
  for (const job::PlannedTask& planned : plan.tasks) {
    const auto found = members.find(planned.role);
    if (found != members.end() && !found->second.contains(planned.index)) continue;
    if (membership.IsReplaced(planned.role, planned.index)) continue;
    desired.tasks.push_back(Launcher(places, planned));
    if (places.shared) desired.tasks.back().work_dir = work_dir;
    const auto avoided = membership.excluded_hosts().find({planned.role, planned.index});
    if (avoided != membership.excluded_hosts().end())
      desired.tasks.back().excluded_hosts = avoided->second;
  }
  return desired;
}

}  // namespace shoal::controller
