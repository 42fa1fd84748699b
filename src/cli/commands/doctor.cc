// `shoal doctor`: checks this machine's abilities for jobs and the leftovers of dead jobs.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <climits>
#include <filesystem>
#include <memory>

#include "base/id.h"
#include "base/json.h"
#include "cli/commands/commands.h"
#include "cli/commands/doctor_gpus.h"
#include "cli/jobs/engines.h"
#include "cli/terminal/report.h"
#include "controller/files/state_home.h"
#include "controller/recovery/leftovers.h"
#include "controller/store/sqlite_check.h"
#include "controller/store/sqlite_store.h"
#include "engine/local/job_records.h"
#include "engine/local/job_remains.h"
#include "host/network/port_lease.h"
#include "host/process/isolation.h"
#include "host/process/process_usage.h"
#include "host/process/shared_memory.h"
#include "ps/transport/ucx_library.h"

namespace shoal::cli {
namespace {

namespace fs = std::filesystem;

enum class CheckResult : uint8_t { kOk, kWarning, kError };

struct Finding {
  std::string name;
  CheckResult result = CheckResult::kOk;
  std::string meaning;
  std::string remedy;
  json::object data;  // additional fields for --json
};

std::string Gigabytes(int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

// Cores, memory, vector instructions and huge pages.
void CheckMachine(std::vector<Finding>* findings) {
  const host::MachineFacts facts = host::ReadMachineFacts();
  findings->push_back(
      {"machine",
       CheckResult::kOk,
       fmt::format("{:g} cores, {} of memory of which {} are available{}{}", facts.cores,
                   Gigabytes(facts.memory_bytes), Gigabytes(facts.available_bytes),
                   facts.processor.empty() ? "" : ", ", facts.processor),
       "",
       {{"cores", facts.cores},
        {"memory_bytes", facts.memory_bytes},
        {"available_bytes", facts.available_bytes},
        {"processor", facts.processor}}});
  const bool wide = facts.simd == "AVX-512" || facts.simd == "AVX2" || facts.simd == "NEON";
  findings->push_back({"vectors",
                       wide ? CheckResult::kOk : CheckResult::kWarning,
                       wide ? "the trainers use " + facts.simd
                            : "no AVX2 here: training is several times slower than it could be",
                       wide ? ""
                            : "use a processor of 2013 or later; in a virtual machine, pass "
                              "the host's processor through",
                       {{"simd", facts.simd}}});
  const bool huge = facts.transparent_huge_pages == "always" ||
                    facts.transparent_huge_pages == "madvise" || facts.huge_pages_free > 0;
  findings->push_back(
      {"huge pages",
       huge ? CheckResult::kOk : CheckResult::kWarning,
       huge ? fmt::format("transparent huge pages: {}; free huge pages of {} KiB: {}",
                          facts.transparent_huge_pages, facts.huge_page_bytes / 1024,
                          facts.huge_pages_free)
            : "no huge pages: lookups in large tables are slower",
       huge ? "" : "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
       {{"transparent", facts.transparent_huge_pages},
        {"page_bytes", facts.huge_page_bytes},
        {"free", facts.huge_pages_free}}});
}

// The ranges from which tasks get ports, and their overlap with the kernel's ephemeral range.
void CheckPorts(std::vector<Finding>* findings) {
  const host::PortRange ephemeral = host::EphemeralRange();
  const std::vector<host::PortRange> ranges = host::LeaseRanges(ephemeral);
  std::string text;
  json::array list;
  bool inside = false;
  for (const host::PortRange& range : ranges) {
    text += fmt::format("{}{}-{}", text.empty() ? "" : ", ", range.first, range.last);
    list.push_back(json::array{range.first, range.last});
    inside = inside || (range.first <= ephemeral.last && ephemeral.first <= range.last);
  }
  const auto lease = host::PortLease::Acquire(ranges, [] { return RandomSeed(); });
  Finding finding{"ports", CheckResult::kOk, "tasks get ports from " + text, "", {}};
  finding.data = {{"ranges", list}, {"ephemeral", json::array{ephemeral.first, ephemeral.last}}};
  if (!lease.ok()) {
    finding.result = CheckResult::kError;
    finding.meaning = "no port is available: " + lease.status().message();
    finding.remedy = "end the programs that hold them (ss -tanp lists them)";
  } else if (inside) {
    finding.result = CheckResult::kWarning;
    finding.meaning += fmt::format(
        "; the kernel takes ports for outgoing connections from the same range ({}-{}), so a port "
        "may be taken while its program starts",
        ephemeral.first, ephemeral.last);
    finding.remedy = "sysctl net.ipv4.ip_local_port_range='32768 60999'";
  }
  findings->push_back(std::move(finding));
}

// The nearest existing parent directory.
fs::path Existing(fs::path path) {
  std::error_code error;
  while (!fs::exists(path, error) && path.has_relative_path()) path = path.parent_path();
  return path;
}

// The state directory: writable, with free space.
void CheckStore(std::vector<Finding>* findings) {
  Finding finding{"store", CheckResult::kOk, "", "", {}};
  const Result<fs::path> home = controller::FindStateHome();
  if (!home.ok()) {
    finding.result = CheckResult::kError;
    finding.meaning = home.status().message();
    finding.remedy = "set SHOAL_HOME to a writable directory";
    return findings->push_back(std::move(finding));
  }
  const fs::path existing = Existing(*home);
  std::error_code error;
  const fs::space_info space = fs::space(existing, error);
  finding.data = {{"path", home->string()}, {"free_bytes", static_cast<int64_t>(space.available)}};
  constexpr int64_t kLittle = 1 << 30;
  if (::access(existing.c_str(), W_OK | X_OK) != 0) {
    finding.result = CheckResult::kError;
    finding.meaning = fmt::format("jobs are kept in {}, which cannot be written", home->string());
    finding.remedy = "set SHOAL_HOME to a writable directory, or correct its owner";
  } else {
    finding.meaning = fmt::format("jobs are kept in {}, {} free", home->string(),
                                  Gigabytes(static_cast<int64_t>(space.available)));
    if (static_cast<int64_t>(space.available) < kLittle) {
      finding.result = CheckResult::kWarning;
      finding.remedy = "free some space, or set SHOAL_HOME to another disk";
    }
  }
  findings->push_back(std::move(finding));
}

// Adds a finding about damage of the store's file, or of events and tasks in it.
void TellDamage(const std::vector<std::string>& damage, Finding finding,
                std::vector<Finding>* findings) {
  finding.result = CheckResult::kError;
  for (const std::string& one : damage)
    finding.meaning += (finding.meaning.empty() ? "the store is damaged: " : "; ") + one;
  finding.remedy =
      "end running jobs, copy the state directory's shoal.db, and move it away: its job records "
      "are lost, the jobs' directories remain";
  findings->push_back(std::move(finding));
}

// Checks for unreadable records.
void CheckRecords(std::vector<Finding>* findings) {
  const Result<fs::path> home = controller::FindStateHome();
  std::error_code error;
  if (!home.ok() || !fs::exists(controller::StateHome(*home).database(), error)) return;
  Finding finding{"records", CheckResult::kOk, "", "", {}};
  const auto store = controller::OpenSqliteStore(controller::StateHome(*home).database());
  const auto jobs = store.ok() ? (*store)->ListJobs({.limit = INT_MAX}) : store.status();
  if (!jobs.ok()) {
    finding.result = CheckResult::kError;
    finding.meaning = "jobs cannot be listed: " + jobs.status().message();
    return findings->push_back(std::move(finding));
  }
  std::string damaged;
  json::array list;
  for (const controller::JobRecord& job : *jobs) {
    if (job.damage.empty()) continue;
    damaged += fmt::format("{}{} ({})", damaged.empty() ? "" : ", ", job.id, job.damage);
    list.push_back({{"job", job.id}, {"damage", job.damage}});
  }
  auto rows = controller::FindStoreDamage(controller::StateHome(*home).database());
  if (!rows.ok()) rows = std::vector<std::string>{rows.status().message()};
  finding.data = {{"jobs", jobs->size()},
                  {"unreadable", list},
                  {"damage", json::array(rows->begin(), rows->end())}};
  if (!rows->empty()) return TellDamage(*rows, std::move(finding), findings);
  finding.meaning = fmt::format("{} job{}, {}", jobs->size(), jobs->size() == 1 ? "" : "s",
                                list.empty() ? "all can be read" : "of these " + damaged);
  if (!list.empty()) {
    finding.result = CheckResult::kError;
    finding.remedy =
        "shoal jobs --prune unreadable removes those that have ended; shoal stop JOB ends one that "
        "has not";
  }
  findings->push_back(std::move(finding));
}

// Directories that may hold control groups: this machine's, and those recorded by jobs of this
// state home.
std::vector<fs::path> GroupBases(const host::Isolation& isolation) {
  std::vector<fs::path> bases = isolation.cgroups.Bases();
  const Result<fs::path> home = controller::FindStateHome();
  if (!home.ok()) return bases;
  std::error_code error;
  for (fs::directory_iterator it(*home / "jobs", error), end; !error && it != end;
       it.increment(error)) {
    const auto records = engine::ReadRecords(it->path().string());
    if (!records.ok()) continue;
    for (const std::string& base : records->group_bases) {
      if (std::find(bases.begin(), bases.end(), base) == bases.end()) bases.emplace_back(base);
    }
  }
  return bases;
}

// A job lives while its coordinator lives, or an engine that would restart it.
bool Lives(const engine::JobRemains& job) {
  if (job.coordinator) return true;
  if (!job.job_dir.empty() && engine::HasLiveEngine(job.job_dir)) return true;
  const Result<fs::path> home = controller::FindStateHome();
  return home.ok() && engine::HasLiveEngine(controller::StateHome(*home).job_dir(job.job_id));
}

std::string Describe(const engine::JobRemains& job) {
  std::string text = job.job_id + " (";
  if (!job.pids.empty())
    text += fmt::format("{} process{}: {}", job.pids.size(), job.pids.size() == 1 ? "" : "es",
                        fmt::join(job.pids, " "));
  if (job.groups) text += job.pids.empty() ? "control groups" : ", control groups";
  return text + ")";
}

// Processes and control groups of dead jobs; with `clean` they are killed and removed.
void CheckLeftovers(const host::Isolation& isolation, bool clean, std::vector<Finding>* findings) {
  const std::vector<fs::path> bases = GroupBases(isolation);
  Finding finding{"leftovers", CheckResult::kOk, "", "", {}};
  std::string left;
  std::string removed;
  json::array list;
  int living = 0;
  for (const engine::JobRemains& job : engine::FindJobRemains(bases)) {
    if (Lives(job)) {
      ++living;
      continue;
    }
    const Status swept = clean ? engine::RemoveJobRemains(job.job_id, bases) : Status::Ok();
    const bool gone = clean && swept.ok();
    std::string& text = gone ? removed : left;
    text += (text.empty() ? "" : ", ") + Describe(job);
    if (!swept.ok()) text += ": " + swept.message();
    list.push_back({{"job", job.job_id},
                    {"pids", json::array(job.pids.begin(), job.pids.end())},
                    {"control_groups", job.groups},
                    {"removed", gone}});
  }
  finding.data = {{"jobs", list}, {"living", living}};
  finding.meaning = left.empty() ? "no leftovers of dead jobs" : "leftovers of dead jobs: " + left;
  if (!removed.empty()) finding.meaning += "; removed " + removed;
  if (living > 0)
    finding.meaning += fmt::format("; {} job{} running", living, living == 1 ? " is" : "s are");
  if (!left.empty()) {
    finding.result = CheckResult::kError;
    finding.remedy = clean ? "end them as the user who owns them" : "shoal doctor --clean";
  }
  findings->push_back(std::move(finding));
}

std::string Mebibytes(int64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

// Checks for shared memory that outlived its programs.
void CheckSharedMemory(bool clean, std::vector<Finding>* findings) {
  Finding finding{"shm left", CheckResult::kOk, "", "", {}};
  std::string left;
  json::array list;
  for (const host::OrphanedSharedMemory& one : host::FindOrphanedSharedMemory(clean)) {
    left += fmt::format("{}{} of {}", left.empty() ? "" : ", ", Mebibytes(one.bytes), one.job);
    list.push_back({{"job", one.job}, {"path", one.path.string()}, {"bytes", one.bytes}});
  }
  const host::SystemVMemory detached = host::FindDetachedSystemVMemory();
  finding.data = {{"jobs", list},
                  {"segments", detached.segments},
                  {"segment_bytes", detached.bytes},
                  {"removed", clean}};
  finding.meaning =
      left.empty() ? "no shared memory of dead jobs in /dev/shm"
                   : (clean ? "removed /dev/shm of dead jobs: " : "/dev/shm of dead jobs: ") + left;
  if (detached.segments > 0) {
    finding.result = CheckResult::kWarning;
    finding.meaning += fmt::format(
        "; {} of your user in {} System V segments without an attached process, of any "
        "program",
        Mebibytes(detached.bytes), detached.segments);
    finding.remedy = "ipcs -mp lists them, ipcrm -m ID removes one";
  }
  if (!left.empty() && !clean) {
    finding.result = CheckResult::kError;
    finding.remedy = "shoal doctor --clean" + (finding.remedy.empty() ? "" : "; " + finding.remedy);
  }
  findings->push_back(std::move(finding));
}

// Checks for ended jobs whose engine could not remove all their resources.
void CheckUnremoved(std::vector<Finding>* findings) {
  const Result<fs::path> home = controller::FindStateHome();
  if (!home.ok()) return;
  std::string left;
  json::array list;
  for (const controller::Leftover& one : controller::ListLeftovers(controller::StateHome(*home))) {
    left += fmt::format("{}{} on {}: {}", left.empty() ? "" : "; ", one.job, one.engine, one.why);
    list.push_back({{"job", one.job}, {"engine", one.engine}, {"why", one.why}});
  }
  if (list.empty()) return;
  findings->push_back({"unremoved",
                       CheckResult::kError,
                       "of ended jobs: " + left,
                       "make the engine reachable; shoal commands try again once a minute",
                       {{"jobs", std::move(list)}}});
}

// Checks the engines other than local, which are optional.
void CheckEngines(std::vector<Finding>* findings) {
  for (const std::string& name : EngineNameList()) {
    if (name == kLocalEngine) continue;
    auto engine = MakeEngine(name);
    const Result<engine::Capacity> capacity =
        engine.ok() ? (*engine)->GetCapacity() : engine.status();
    Finding finding{name, CheckResult::kOk, "", "", {{"usable", capacity.ok()}}};
    finding.meaning =
        capacity.ok()
            ? fmt::format(
                  "jobs can run there (--engine {}): {:.0f} processors, {} of memory, {} GPUs",
                  name, capacity->cpu, Gigabytes(capacity->memory_bytes), capacity->gpu)
            : "not available: " + capacity.status().message();
    findings->push_back(std::move(finding));
  }
}

// Checks UCX, an optional transport.
void CheckUcx(std::vector<Finding>* findings) {
  Finding finding{"ucx", CheckResult::kOk, "", "", {}};
#if SHOAL_HAS_UCX
  const auto ucx = ps::Ucx();
  finding.data["usable"] = ucx.ok();
  finding.meaning = ucx.ok() ? fmt::format(
                                   "UCX {}.{}: parameter servers can be reached over it "
                                   "(learn: {{transport: ucx}})",
                                   (*ucx)->major, (*ucx)->minor)
                             : "not available: " + ucx.status().message();
#else
  finding.data["usable"] = false;
  finding.meaning = "not available: this program was built without UCX";
#endif
  findings->push_back(std::move(finding));
}

// All findings, in the order of the output.
std::vector<Finding> Examine(bool clean) {
  std::vector<Finding> findings;
  const host::Isolation isolation = host::ProbeIsolation();
  for (const host::IsolationFact& fact : host::Describe(isolation)) {
    Finding finding{fact.name,
                    fact.best ? CheckResult::kOk : CheckResult::kWarning,
                    fact.meaning,
                    fact.remedy,
                    {}};
    if (fact.name == "processes") finding.data["mode"] = std::string(TreeModeName(isolation.tree));
    findings.push_back(std::move(finding));
  }
  CheckMachine(&findings);
  GpuFinding gpus = FindGpus();
  findings.push_back({"gpus", gpus.usable ? CheckResult::kOk : CheckResult::kWarning,
                      std::move(gpus.meaning), std::move(gpus.remedy), std::move(gpus.data)});
  CheckEngines(&findings);
  CheckUcx(&findings);
  CheckPorts(&findings);
  CheckStore(&findings);
  CheckRecords(&findings);
  CheckLeftovers(isolation, clean, &findings);
  CheckSharedMemory(clean, &findings);
  CheckUnremoved(&findings);
  return findings;
}

const char* ResultText(CheckResult result) {
  switch (result) {
    case CheckResult::kOk:
      return "ok";
    case CheckResult::kWarning:
      return "note";
    case CheckResult::kError:
      break;
  }
  return "bad";
}

std::string JsonOf(const std::vector<Finding>& findings, bool good) {
  json::array list;
  for (const Finding& finding : findings) {
    json::object object = finding.data;
    object["name"] = finding.name;
    object["verdict"] = ResultText(finding.result);
    object["meaning"] = finding.meaning;
    if (!finding.remedy.empty()) object["remedy"] = finding.remedy;
    list.push_back(std::move(object));
  }
  return JsonLines(json::object{{"ok", good}, {"findings", std::move(list)}});
}

int Doctor(const Context& context, bool clean) {
  const std::vector<Finding> findings = Examine(clean);
  bool good = true;
  std::string text;
  for (const Finding& finding : findings) {
    good = good && finding.result != CheckResult::kError;
    text +=
        fmt::format("{:<5}{:<11}{}\n", ResultText(finding.result), finding.name, finding.meaning);
    if (!finding.remedy.empty()) text += fmt::format("{:<16}to do: {}\n", "", finding.remedy);
  }
  return PrintResult(context.json ? JsonOf(findings, good) : text, good ? 0 : 1);
}

constexpr const char* kDoctorFooter = R"help(Examples:
  shoal doctor
  shoal doctor --clean                     remove the leftovers of dead jobs as well
  shoal doctor --json | jq '.findings[] | select(.verdict != "ok")'

Exit code 1 if a finding is bad: jobs would fail, or leftovers of dead jobs remain.)help";

}  // namespace

void AddDoctor(CLI::App& app, Run* chosen) {
  auto clean = std::make_shared<bool>(false);
  CLI::App* sub =
      app.add_subcommand("doctor", "Check this machine's abilities and the leftovers of dead jobs");
  sub->add_flag("--clean", *clean,
                "Kill processes and remove files that dead jobs have left behind");
  sub->footer(kDoctorFooter);
  sub->callback([clean, chosen] {
    *chosen = [clean](const Context& context) { return Doctor(context, *clean); };
  });
}

}  // namespace shoal::cli
