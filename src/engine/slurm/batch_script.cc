#include "engine/slurm/batch_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/slurm/grant.h"
#include "engine/slurm/slurm_helper.h"
#include "engine/tasks/restart_rules.h"

namespace shoal::engine::slurm {
namespace {

constexpr std::string_view kComment = "shoal:";

std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// Checks a word of an #SBATCH line, which Slurm splits at spaces.
Status CheckWord(const std::string& what, const std::string& text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '\'' || c == '"' || c == '\\' || c == '#')
      return InvalidArgument(what + ": got \"" + text +
                             "\", expected no spaces, quotes, backslashes or '#'");
  }
  return Status::Ok();
}

// Rounded up: Slurm counts minutes.
std::string TimeText(std::chrono::milliseconds time) {
  const int64_t minutes = std::max<int64_t>(1, (time.count() + 59'999) / 60'000);
  return fmt::format("{}-{:02}:{:02}:00", minutes / 1440, minutes / 60 % 24, minutes % 60);
}

// The options of a job for sbatch and salloc.
class Request {
 public:
  void Add(const std::string& word) { words_.push_back(word); }
  // Adds nothing if the value is empty.
  void Add(const char* option, const char* field, const std::string& value) {
    if (value.empty()) return;
    if (const Status fine = CheckWord(std::string("slurm.") + field, value); !fine.ok())
      status_ = fine;
    Add(std::string(option) + "=" + value);
  }
  const Status& status() const { return status_; }
  std::vector<std::string> Take() { return std::move(words_); }

 private:
  std::vector<std::string> words_;
  Status status_;
};

void AddResources(const Cell& cell, const job::Slurm& slurm, Request* lines) {
  lines->Add(fmt::format("--ntasks={}", cell.count));
  lines->Add(fmt::format("--cpus-per-task={}", cell.cpus));
  if (slurm.nodes > 0) lines->Add(fmt::format("--nodes={}", slurm.nodes));
  if (cell.memory_mib > 0) {
    const int64_t per_cpu = (cell.memory_mib + cell.cpus - 1) / cell.cpus;
    lines->Add(fmt::format("--mem-per-cpu={}M", per_cpu));
  }
  if (cell.gpus > 0) {
    const std::string type = slurm.gpu_type.empty() ? "" : slurm.gpu_type + ":";
    lines->Add(fmt::format("--gpus-per-task={}{}", type, cell.gpus));
  }
}

std::string Ahead(const job::Slurm& slurm) {
  return std::to_string(std::clamp<int64_t>(slurm.save_before.count() / 1000, 1, 65'535));
}

// Options of one component, for sbatch and salloc.
Result<std::vector<std::string>> RequestOf(const DesiredJob& desired, const CellPlan& plan,
                                           const std::string& program) {
  const job::Slurm& slurm = plan.slurm;
  Request lines;
  lines.Add("--job-name=" + desired.job_id);
  lines.Add("--comment=" + CommentOf(desired.job_id));
  AddResources(plan.cell, slurm, &lines);
  lines.Add("--partition", "partition", slurm.partition);
  lines.Add("--account", "account", slurm.account);
  lines.Add("--qos", "qos", slurm.qos);
  lines.Add("--constraint", "constraint", slurm.constraint);
  lines.Add("--reservation", "reservation", slurm.reservation);
  if (slurm.time.count() > 0) lines.Add("--time=" + TimeText(slurm.time));
  if (slurm.exclusive) lines.Add("--exclusive");
  lines.Add("--no-kill");
  // Used to find the directory again from the job's id alone.
  TRY(CheckWord("the job's directory", desired.job_dir));
  lines.Add("--chdir=" + desired.job_dir);
  for (const std::string& option : slurm.options) {
    TRY(CheckWord("slurm.options", option));
    if (!option.starts_with("--"))
      return InvalidArgument("slurm.options: got \"" + option +
                             "\", expected an option of sbatch such as --licenses=matlab");
    lines.Add(option);
  }
  TRY(lines.status());
  for (const std::string* text : {&desired.job_dir, &program}) {
    if (text->find('\n') != std::string::npos || !text->starts_with('/'))
      return InvalidArgument("got the path \"" + *text +
                             "\", expected an absolute one without line breaks");
  }
  return lines.Take();
}

}  // namespace

std::string CommentOf(const std::string& job_id) { return std::string(kComment) + job_id; }

std::string JobIdOfComment(std::string_view comment) {
  if (!comment.starts_with(kComment)) return "";
  const std::string id(comment.substr(kComment.size()));
  return CheckName("job id", id).ok() ? id : "";
}

std::string HetGroupOption(int component) { return fmt::format("--het-group={}", component); }

Result<std::string> RenderScript(const DesiredJob& desired, const std::vector<CellPlan>& plan,
                                 const std::string& program) {
  std::string lines;
  for (const CellPlan& component : plan) {
    TRY_ASSIGN(std::vector<std::string> words, RequestOf(desired, component, program));
    words.emplace_back(desired.slurm.requeue ? "--requeue" : "--no-requeue");
    words.push_back("--signal=B:USR1@" + Ahead(desired.slurm));
    words.emplace_back("--output=/dev/null");
    if (!lines.empty()) lines += "#SBATCH hetjob\n";
    for (const std::string& word : words) lines += "#SBATCH " + word + "\n";
  }
  return fmt::format(
      "#!/bin/sh\n{}dir={}\n"
      "# Every node of the allocation must see it.\n"
      "[ -r \"$dir/engine/orders.json\" ] || exit {}\n"
      "# A log that cannot be opened is no reason to end: `command` keeps the shell alive.\n"
      "command exec 2>>\"$dir/engine/slurm.log\"\n"
      "exec {} slurm agent \"$dir\"\n",
      lines, Quoted(desired.job_dir), kDirectoryNotSeen, Quoted(program));
}

Result<ImmediateRequest> MakeImmediateRequest(const DesiredJob& desired, const CellPlan& plan,
                                              const std::string& program) {
  TRY_ASSIGN(const std::vector<std::string> request, RequestOf(desired, plan, program));
  ImmediateRequest at_once;
  at_once.salloc = {"salloc", "--immediate=1", "--kill-command=TERM"};
  at_once.salloc.insert(at_once.salloc.end(), request.begin(), request.end());
  at_once.salloc.insert(at_once.salloc.end(), {"/bin/sh", "-c", kReportGrantScript});
  at_once.agent = {FindStaticTwin(program), "slurm", "agent", desired.job_dir,
                   Ahead(desired.slurm)};
  return at_once;
}

std::vector<std::string> StepArgv(const job::Resources& resources, size_t tasks,
                                  const std::string& nodes_file, bool overlap,
                                  const std::string& group) {
  // An overlapping step may use all of the job's processors on its node: Slurm does not know which
  // of them are idle, but the kernel does.
  const int cpus = overlap ? 1 : std::max(1, static_cast<int>(std::ceil(resources.cpu_reserved())));
  const int64_t mib = (resources.memory_bytes + (1 << 20) - 1) >> 20;
  std::vector<std::string> words = {"srun",
                                    "--label",
                                    "--no-kill",
                                    "--kill-on-bad-exit=0",
                                    "--wait=0",
                                    "--distribution=arbitrary",
                                    "--nodelist=" + nodes_file,
                                    fmt::format("--ntasks={}", tasks)};
  if (!group.empty()) words.insert(words.begin() + 1, group);
  if (overlap) {
    words.insert(words.end(), {"--overlap", "--cpu-bind=none"});
  } else {
    words.insert(words.end(), {"--exact", fmt::format("--cpus-per-task={}", cpus)});
  }
  words.push_back(mib > 0 ? fmt::format("--mem-per-cpu={}M", (mib + cpus - 1) / cpus) : "--mem=0");
  words.push_back(resources.gpu > 0 ? fmt::format("--gpus-per-task={}", resources.gpu)
                                    : "--gres=none");
  return words;
}

}  // namespace shoal::engine::slurm
