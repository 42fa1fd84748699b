#include "engine/slurm/slurm_commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <map>
#include <set>

#include "base/file.h"
#include "engine/process/child_process.h"
#include "engine/process/task_process.h"
#include "engine/slurm/batch_script.h"
#include "engine/slurm/cell_placement.h"

namespace shoal::engine::slurm {
namespace {

constexpr size_t kLongestText = 4096;

// The next field; the last field is the whole rest.
std::string_view Next(std::string_view* rest, char mark) {
  const size_t end = std::min(rest->find(mark), rest->size());
  const std::string_view field = rest->substr(0, end);
  rest->remove_prefix(std::min(end + 1, rest->size()));
  return field;
}

bool ToInt(std::string_view text, int64_t* value) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return !text.empty() && error == std::errc() && rest == text.data() + text.size();
}

// A text without control characters, for messages.
std::string Clean(std::string_view text) {
  std::string clean(text.substr(0, kLongestText));
  for (char& c : clean) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  }
  while (!clean.empty() && clean.back() == ' ') clean.pop_back();
  return clean;
}

// The value of a name in "A=1 B=2 …".
std::string_view ValueOf(std::string_view text, std::string_view name) {
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const bool begins = at == 0 || text[at - 1] == ' ';
    if (!begins || at + name.size() >= text.size() || text[at + name.size()] != '=') continue;
    const std::string_view value = text.substr(at + name.size() + 1);
    return value.substr(0, value.find_first_of(" \n"));
  }
  return {};
}

// A reason of Slurm and its text for the user.
struct Meaning {
  std::string_view reason;
  const char* says;
};
constexpr Meaning kMeanings[] = {
    {"Resources", "what it asks for is in use by other jobs"},
    {"Priority", "jobs of a higher priority come first"},
    {"BeginTime", "it was requeued and starts in a moment"},
    {"None", "Slurm has not considered it yet"},
    {"Dependency", "it waits for another job"},
    {"PartitionTimeLimit", "its `slurm.time` is longer than the partition allows"},
    {"PartitionNodeLimit", "it asks for more nodes than the partition allows"},
    {"PartitionDown", "the partition is down; ask the administrator, or name another one"},
    {"PartitionInactive", "the partition is inactive; name another one"},
    {"ReqNodeNotAvail", "a node that it asks for is down or reserved"},
    {"JobHeldUser", "it is held; `scontrol release` lets it go"},
    {"JobHeldAdmin", "the administrator holds it"},
    {"BadConstraints", "no node has what its `slurm.constraint` asks for"},
    {"Reservation", "its reservation has not begun"},
    {"Licenses", "the licenses are in use"},
    {"Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
     "nodes that it needs are down, drained or reserved"},
};

// Whether a reason says more than that the job waits.
bool SaysMuch(const std::string& reason) {
  return reason != "None" && reason != "Resources" && reason != "Priority";
}

// Combines the components (at least one) of a heterogeneous job.
QueuedJob Fold(std::map<int64_t, QueuedJob> components) {
  QueuedJob job = components.begin()->second;
  const bool head_over = !IsActive(job.state);
  const bool head_waits = IsPending(job.state);
  for (const auto& [index, other] : components) {
    const bool over = !IsActive(other.state);
    if (other.state != "COMPLETING")
      job.torn = job.torn || (head_over && !over) || (head_waits && !IsPending(other.state));
    if (head_over && !over) job.state = other.state;
    if (!SaysMuch(job.reason) && SaysMuch(other.reason)) job.reason = other.reason;
    job.start = std::max(job.start, other.start);  // "N/A" sorts after all times
  }
  return job;
}

// "PATH|COMMENT", where both may contain '|'; Shoal's comments contain none.
void TakePathAndComment(std::string_view text, QueuedJob* job) {
  size_t mark = text.rfind('|');
  if (JobIdOfComment(text.substr(mark + 1)).empty()) mark = text.find('|');
  job->work_dir = Clean(text.substr(0, mark));
  job->comment = Clean(text.substr(mark + 1));
}

}  // namespace

std::vector<QueuedJob> ParseQueue(std::string_view text) {
  std::vector<QueuedJob> jobs;
  std::map<int64_t, std::map<int64_t, QueuedJob>> components;
  while (!text.empty()) {
    std::string_view line = Next(&text, '\n');
    if (std::count(line.begin(), line.end(), '|') < 7) continue;
    QueuedJob job;
    std::string_view number = Next(&line, '|');
    const size_t plus = number.find('+');
    int64_t component = 0;
    job.heterogeneous = plus != std::string_view::npos;
    if (job.heterogeneous && !ToInt(number.substr(plus + 1), &component)) continue;
    if (!ToInt(number.substr(0, plus), &job.number) || job.number <= 0) continue;
    job.state = Clean(Next(&line, '|'));
    job.reason = Clean(Next(&line, '|'));
    job.start = Clean(Next(&line, '|'));
    job.nodes = Clean(Next(&line, '|'));
    job.batch_host = Clean(Next(&line, '|'));
    TakePathAndComment(line, &job);
    if (job.state.empty()) continue;
    if (job.heterogeneous) {
      components[job.number].emplace(component, std::move(job));
    } else {
      jobs.push_back(std::move(job));
    }
  }
  for (auto& [number, of_one] : components) jobs.push_back(Fold(std::move(of_one)));
  return jobs;
}

const QueuedJob* FindJob(const std::vector<QueuedJob>& queue, const std::string& job_id,
                         int64_t number) {
  const QueuedJob* by_comment = nullptr;
  for (const QueuedJob& one : queue) {
    if (!IsActive(one.state)) continue;
    const std::string named = JobIdOfComment(one.comment);
    if (named == job_id) by_comment = &one;
    // The comment may have been set by the user or a site plugin.
    if (number != 0 && one.number == number && (named.empty() || named == job_id)) return &one;
  }
  return by_comment;
}

bool IsPending(const std::string& state) {
  static const std::set<std::string> kPending = {"PENDING",      "CONFIGURING",  "REQUEUED",
                                                 "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD",
                                                 "REQUEUE_FED"};
  return kPending.contains(state);
}

bool IsActive(const std::string& state) {
  static const std::set<std::string> kActive = {"RUNNING",   "COMPLETING", "SUSPENDED", "SIGNALING",
                                                "STAGE_OUT", "STOPPED",    "RESIZING"};
  return IsPending(state) || kActive.contains(state);
}

bool IsSuspended(const std::string& state) { return state == "SUSPENDED" || state == "STOPPED"; }

bool IsEndedBySlurm(const std::string& state) {
  return state == "PREEMPTED" || state == "NODE_FAIL" || state == "BOOT_FAIL";
}

bool HasLostBatchNode(const QueuedJob& job) {
  if (job.state != "RUNNING" || job.batch_host.empty() || job.batch_host == "n/a") return false;
  const auto nodes = ExpandHosts(job.nodes);
  return nodes.ok() && !nodes->empty() &&
         std::find(nodes->begin(), nodes->end(), job.batch_host) == nodes->end();
}

std::string DescribeWait(const QueuedJob& job) {
  std::string why = job.reason;
  for (const Meaning& meaning : kMeanings) {
    if (job.reason == meaning.reason) why = job.reason + ", " + meaning.says;
  }
  if (job.reason.starts_with("Assoc") || job.reason.starts_with("QOS"))
    why = job.reason + ", a limit of the account or QOS; `sacctmgr show assoc` lists them";
  const bool known = !job.start.empty() && job.start != "N/A" && job.start != "NONE";
  return fmt::format("waits in Slurm's queue (job {}): {}{}", job.number, why,
                     known ? "; expected to start at " + job.start : "");
}

Result<EndedJob> ParseEndedJob(std::string_view text) {
  EndedJob job;
  job.state = Clean(ValueOf(text, "JobState"));
  if (job.state.empty()) return DataLoss("scontrol show job: there is no JobState in its output");
  job.reason = Clean(ValueOf(text, "Reason"));
  job.node = Clean(ValueOf(text, "BatchHost"));
  std::string_view codes = ValueOf(text, "ExitCode");
  int64_t code = 0;
  int64_t signal = 0;
  if (ToInt(Next(&codes, ':'), &code) && ToInt(codes, &signal)) {
    job.exit_code = static_cast<int>(std::clamp<int64_t>(code, 0, 255));
    job.signal = static_cast<int>(std::clamp<int64_t>(signal, 0, 127));
  }
  return job;
}

std::string DescribeEnd(const EndedJob& job, const std::string& job_dir) {
  constexpr int kNoProgram = 127;
  constexpr int kNotExecutable = 126;
  if (job.exit_code == kDirectoryNotSeen)
    return fmt::format(
        "node {} does not see the job's directory {}; set SHOAL_HOME to a directory on a file "
        "system "
        "that all nodes of the cluster see",
        job.node, job_dir);
  if (job.exit_code == kNoProgram || job.exit_code == kNotExecutable)
    return fmt::format(
        "node {} does not see the program shoal at the path where it is here; install it on a file "
        "system that all nodes of the cluster see",
        job.node);
  if (job.state == "CANCELLED")
    return "it was cancelled in Slurm (by scancel, or with its salloc), not by shoal";
  if (job.state == "TIMEOUT")
    return "its time limit was reached; raise the job file's `slurm.time`, or `slurm.save_before`";
  if (job.state == "DEADLINE") return "its deadline in Slurm has passed";
  if (job.state == "OUT_OF_MEMORY")
    return "it used more memory than it asked for; raise the roles' `resources.memory`";
  if (job.state == "PREEMPTED") return "it was preempted by a job of higher priority";
  if (job.state == "NODE_FAIL") return "node " + job.node + " failed";
  if (job.state == "BOOT_FAIL") return "a node could not be booted";
  return fmt::format("it ended as {} ({}), exit code {}", job.state, job.reason, job.exit_code);
}

int CountGpus(std::string_view gres) {
  int64_t gpus = 0;
  while (!gres.empty()) {
    std::string_view one = Next(&gres, ',');
    one = one.substr(0, one.find('('));
    if (!one.starts_with("gpu")) continue;
    const size_t colon = one.rfind(':');
    int64_t count = 0;
    if (colon == std::string_view::npos || !ToInt(one.substr(colon + 1), &count)) continue;
    gpus += std::clamp<int64_t>(count, 0, job::kMaxGpus);
  }
  return static_cast<int>(std::min<int64_t>(gpus, INT32_MAX));
}

Capacity ParseNodes(std::string_view text) {
  static constexpr std::string_view kOut[] = {"down",  "drain", "fail",    "unknown",
                                              "maint", "boot",  "powered", "future"};
  constexpr double kMebi = 1 << 20;
  Capacity capacity;
  std::set<std::string, std::less<>> seen;
  double memory = 0;
  while (!text.empty()) {
    std::string_view line = Next(&text, '\n');
    const std::string_view name = Next(&line, '|');
    const std::string_view state = Next(&line, '|');
    const bool out = state.ends_with('*') ||
                     std::any_of(std::begin(kOut), std::end(kOut),
                                 [&](std::string_view word) { return state.starts_with(word); });
    int64_t cpus = 0;
    int64_t mib = 0;
    if (!ToInt(Next(&line, '|'), &cpus) || !ToInt(Next(&line, '|'), &mib)) continue;
    if (out || cpus < 0 || mib < 0 || !seen.emplace(name).second) continue;
    capacity.cpu += static_cast<double>(cpus);
    memory += static_cast<double>(mib) * kMebi;
    capacity.gpu += CountGpus(line);
  }
  capacity.memory_bytes = static_cast<int64_t>(std::min(memory, 9e18));
  return capacity;
}

std::optional<std::chrono::seconds> ParseTimeLeft(std::string_view text) {
  constexpr int64_t kMostDays = 100'000;
  text = text.substr(0, text.find('\n'));
  int64_t days = 0;
  if (const size_t dash = text.find('-'); dash != std::string_view::npos) {
    if (!ToInt(text.substr(0, dash), &days) || days < 0 || days > kMostDays) return std::nullopt;
    text.remove_prefix(dash + 1);
  }
  int64_t seconds = 0;
  do {
    int64_t part = 0;
    if (!ToInt(Next(&text, ':'), &part) || part < 0 || part > kMostDays) return std::nullopt;
    seconds = seconds * 60 + part;
    if (seconds > kMostDays * 86'400) return std::nullopt;
  } while (!text.empty());
  return std::chrono::seconds(days * 86'400 + seconds);
}

PortRange ParseSrunPorts(std::string_view text) {
  constexpr std::string_view kField = "SrunPortRange";
  const size_t at = text.find(kField);
  if (at == std::string_view::npos) return {};
  std::string_view rest = text.substr(at + kField.size());
  rest = rest.substr(0, rest.find('\n'));
  rest.remove_prefix(std::min(rest.find_first_of("0123456789"), rest.size()));
  std::string_view last = rest.substr(std::min(rest.find('-') + 1, rest.size()));
  last = last.substr(0, last.find(' '));
  int64_t low = 0;
  int64_t high = 0;
  if (!ToInt(rest.substr(0, rest.find('-')), &low) || !ToInt(last, &high)) return {};
  if (low <= 0 || high < low || high > UINT16_MAX) return {};
  return {static_cast<int>(low), static_cast<int>(high)};
}

std::optional<PortRange> SrunPortsOfFile(std::string_view text) {
  PortRange ports;
  while (!text.empty()) {
    std::string line(Next(&text, '\n'));
    line = line.substr(0, line.find('#'));
    std::transform(line.begin(), line.end(), line.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const size_t first = line.find_first_not_of(" \t");
    if (first == std::string::npos) continue;
    if (line.compare(first, 7, "include") == 0) return std::nullopt;
    constexpr std::string_view kField = "srunportrange";
    if (line.compare(first, kField.size(), kField) == 0)
      ports = ParseSrunPorts("SrunPortRange" + line.substr(first + kField.size()));
  }
  return ports;
}

Result<std::string> SlurmCommands::Run(const std::vector<std::string>& argv,
                                       const std::string& input) const {
  auto ran = RunCommand(argv, env_, input, {}, user_);
  if (!ran.ok()) {
    if (ran.status().code() == Code::kNotFound)
      return Unavailable("there is no " + argv[0] +
                         " here: the engine slurm needs Slurm's commands in PATH; run shoal on a "
                         "login node of the cluster");
    return Unavailable(ran.status().message());
  }
  if (ran->exit_code == 0) return std::move(ran->out);
  std::string said = Clean(ran->err.empty() ? ran->out : ran->err);
  if (said.empty()) said = "it ended with code " + std::to_string(ran->exit_code);
  if (said.find("Could not establish a configuration source") != std::string::npos)
    return Unavailable(
        argv[0] +
        " finds no configuration of Slurm on this machine: no /etc/slurm/slurm.conf, no file that "
        "SLURM_CONF names, no server of configurations (slurmd --conf-server); run shoal on a "
        "login node of the cluster, or set SLURM_CONF");
  const bool mute = said.find("Unable to contact") != std::string::npos ||
                    said.find("Connection refused") != std::string::npos ||
                    said.find("timed out") != std::string::npos;
  if (mute)
    return Unavailable(argv[0] + ": Slurm's controller does not answer (" + said +
                       "); `scontrol ping` says when it does");
  return FailedPrecondition(argv[0] + ": " + said);
}

SlurmCommands SlurmCommands::For(const std::optional<UserIds>& owner,
                                 const std::string& job_dir) const {
  SlurmCommands commands = *this;
  commands.user_ = owner;
  if (owner) commands.env_ = EnvironmentOf(*owner, job_dir, env_);
  return commands;
}

Result<int64_t> SlurmCommands::Submit(const std::string& script) const {
  TRY_ASSIGN(const std::string out, Run({"sbatch", "--parsable"}, script));
  std::string_view text(out);
  text = text.substr(0, text.find_first_of(";\n"));  // "7;cluster"
  int64_t number = 0;
  if (!ToInt(text, &number) || number <= 0)
    return DataLoss("sbatch --parsable: got \"" + Clean(out) + "\", expected a job's number");
  return number;
}

Result<std::vector<QueuedJob>> SlurmCommands::Queue() const {
  const uid_t user = user_ ? user_->uid : ::getuid();
  TRY_ASSIGN(const std::string out,
             Run({"squeue", "--noheader", "--states=all", "--user=" + std::to_string(user),
                  std::string("--format=") + kQueueFormat}));
  std::vector<QueuedJob> queue = ParseQueue(out);
  for (QueuedJob& job : queue) job.user = user;
  return queue;
}

Result<std::optional<std::chrono::seconds>> SlurmCommands::TimeLeft(int64_t number) const {
  TRY_ASSIGN(const std::string out,
             Run({"squeue", "--noheader", "--format=%L", "--jobs=" + std::to_string(number)}));
  return ParseTimeLeft(out);
}

Result<PortRange> SlurmCommands::SrunPorts() const {
  // Reading the file is faster than scontrol, and jobs wait for this.
  constexpr size_t kMaxFile = 16 << 20;
  const char* const named = std::getenv("SLURM_CONF");
  for (const char* path : {named, "/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf"}) {
    if (path == nullptr || *path == '\0') continue;
    const auto text = ReadFile(path, kMaxFile);
    if (!text.ok()) continue;
    if (const auto ports = SrunPortsOfFile(*text)) return *ports;
    break;
  }
  TRY_ASSIGN(const std::string out, Run({"scontrol", "show", "config"}));
  return ParseSrunPorts(out);
}

Result<EndedJob> SlurmCommands::ShowEnded(int64_t number) const {
  TRY_ASSIGN(const std::string out,
             Run({"scontrol", "--oneliner", "show", "job", std::to_string(number)}));
  return ParseEndedJob(out);
}

Status SlurmCommands::Cancel(int64_t number) const {
  return Run({"scancel", "--quiet", std::to_string(number)}).status();
}

Status SlurmCommands::Requeue(int64_t number) const {
  return Run({"scontrol", "requeue", std::to_string(number)}).status();
}

Status SlurmCommands::StartNow(int64_t number) const {
  return Run({"scontrol", "update", "JobId=" + std::to_string(number), "StartTime=now"}).status();
}

Result<Capacity> SlurmCommands::Nodes() const {
  TRY_ASSIGN(const std::string out,
             Run({"sinfo", "--noheader", "--Node", std::string("--format=") + kNodeFormat}));
  return ParseNodes(out);
}

}  // namespace shoal::engine::slurm
