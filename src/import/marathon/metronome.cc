// Metronome job (JSON, read as YAML): one command with its schedules.
#include <algorithm>
#include <cmath>
#include <utility>

#include "import/conversion/importer.h"
#include "import/marathon/marathon_settings.h"
#include "job/spec/cluster_reference.h"

namespace shoal::importer {
namespace {

using job::RestartWhen;

constexpr size_t kMostTexts = 256;
constexpr std::string_view kHeeds = "; the engine marathon heeds it, other engines do not";

// Fields that Metronome's API adds to a job.
constexpr UnsupportedField kJob[] = {
    {"historySummary", "how earlier runs went", "a new run has its own record", true},
    {"activeRuns", "which runs there are", "a new run has its own record", true},
    {"history", "how earlier runs went", "a new run has its own record", true},
};

constexpr UnsupportedField kSchedule[] = {
    {"nextRunAt", "when it runs next", "`shoal schedule` says when", true}};

// Imports one job: a single role with one task, and its schedule.
class MetronomeReader {
 public:
  MetronomeReader(const job::Node& document, JobBuilder* builder)
      : document_(document), builder_(builder) {}

  void Run() {
    FieldReader all(document_, "", "", builder_->diagnostics());
    const std::string id = all.ReadText("id").value_or("");
    builder_->SetName(ToRoleName(id, 63));
    builder_->job()->framework = job::Framework::kGeneric;
    role_ = builder_->AddRole("task", all.PlaceOf("id"), "id");
    builder_->SetSuccess(job::SuccessRule::kAll, {role_->name});
    if (auto run = all.ReadObject("run")) ReadRun(&*run);
    ReadSchedules(&all);
    for (FieldReader& other : all.ReadObjects("dependencies")) {
      other.AddLoss("id", "it was run after " +
                              job::PrintableText(other.ReadText("id").value_or("")) +
                              " had succeeded; not kept: a job knows no others");
      other.ReportUnread("MetronomeJobDependencies");
    }
    all.ReportUnread("MetronomeJob", kJob);
  }

 private:
  job::Marathon& block() { return builder_->job()->marathon; }
  // The path of a field of the role in the job file.
  std::string At(const char* field) const { return "roles." + role_->name + "." + field; }

  // The run specification: resources, command, restart, placement, artifacts, volumes.
  void ReadRun(FieldReader* run) {
    run->set_at(At("resources"));
    role_->resources.cpu = run->ReadNumber("cpus", 0, job::kMaxCpus).value_or(1);
    const double mib = run->ReadNumber("mem", 0, 1 << 24).value_or(128);
    role_->resources.memory_bytes = static_cast<int64_t>(std::ceil(mib)) << 20;
    role_->resources.gpu = static_cast<int>(run->ReadInteger("gpus", 0, job::kMaxGpus).value_or(0));
    ReadSecrets(run);
    ReadEnvironment(run);
    ReadImages(run);
    ReadCommand(run);
    ReadRestart(run);
    ReadPlacement(run);
    ReadArtifacts(run);
    ReadVolumes(run);
    block().user = run->ReadText("user").value_or("");
    if (const auto delay = run->ReadInteger("maxLaunchDelay", 1, 31'536'000))
      builder_->job()->limits.gather = std::chrono::seconds(*delay);
    if (const auto grace = run->ReadNumber("taskKillGracePeriodSeconds", 0, 3600)) {
      builder_->job()->limits.stop_grace =
          std::chrono::milliseconds(static_cast<int64_t>(std::llround(*grace * 1000)));
    }
    run->set_at("roles." + role_->name);
    ReadDisk(run);
    ReportNetworks(run, "MetronomeJobRunNetworks");
    run->ReportUnread("MetronomeJobRun");
  }

  void ReadDisk(FieldReader* run) {
    const double mib = run->ReadNumber("disk", 0, 1e12).value_or(0);
    if (mib == 0) return;
    run->AddLoss("disk", "it might use " + std::to_string(std::llround(mib)) +
                             " MiB of disk; not kept: tasks use their machine's disk");
  }

  void ReadCommand(FieldReader* run) {
    const auto line = run->ReadText("cmd");
    const std::vector<std::string> words = run->ReadTexts("args");
    run->set_at(At("command"));
    if (line && !line->empty()) {
      role_->command = {"sh", "-c", *line};
      if (!words.empty()) run->AddLoss("args", "not kept: cmd is what runs");
      return;
    }
    builder_->SetEntryPoint(role_, words, run, words.empty() ? "" : "args");
  }

  void ReadRestart(FieldReader* run) {
    role_->restart.when = RestartWhen::kNever;
    builder_->MarkDecided(At("restart.when"));
    auto restart = run->ReadObject("restart");
    if (!restart) return;
    restart->set_at(At("restart"));
    if (restart->ReadChoice("policy", {"NEVER", "ON_FAILURE"}).value_or("NEVER") == "ON_FAILURE") {
      role_->restart.when = RestartWhen::kAlways;
      role_->restart.limit = kUnlimitedRestarts;
    }
    if (restart->ReadInteger("activeDeadlineSeconds", 0, 31'536'000)) {
      restart->AddLoss("activeDeadlineSeconds",
                       "it said for how long a run that fails is started again; not kept: it is "
                       "started again " +
                           std::to_string(kUnlimitedRestarts) +
                           " times at most; set restart.limit");
    }
    restart->ReportUnread("MetronomeJobRunRestart");
  }

  void ReadEnvironment(FieldReader* run) {
    auto env = run->ReadObject("env");
    if (!env) return;
    env->set_at(At("env"));
    for (const auto& [key, node] : env->ReadAll()) {
      if (node->kind == job::Node::Kind::kScalar) {
        builder_->SetVariable(role_, key.text, job::EscapeReferences(node->text), &*env);
        continue;
      }
      const job::Node* name = node->kind == job::Node::Kind::kMap ? node->Find("secret") : nullptr;
      const auto source = name == nullptr ? sources_.end() : sources_.find(name->text);
      const bool known = source != sources_.end() && IsVariableName(key.text);
      if (known) block().secrets[key.text] = source->second;
      if (known) {
        env->AddLossExceptOn("marathon", key.text,
                             "it comes from the secret " + job::PrintableText(source->second) +
                                 ", kept in marathon.secrets" + std::string(kHeeds) +
                                 ": give them " + env->at() + "." + key.text);
      } else {
        env->AddLoss(key.text, "its value is no text; not kept: give it with --set " + env->at() +
                                   "." + key.text + "=VALUE");
      }
    }
  }

  void ReadSecrets(FieldReader* run) {
    auto secrets = run->ReadObject("secrets");
    if (!secrets) return;
    for (const auto& [key, node] : secrets->ReadAll()) {
      if (node->kind != job::Node::Kind::kMap) continue;
      FieldReader one(*node, secrets->PathOf(key.text), "marathon.secrets",
                      builder_->diagnostics());
      if (const auto source = one.ReadText("source")) sources_[key.text] = *source;
      one.ReportUnread("MetronomeJobRunSecrets");
    }
  }

  void ReadImages(FieldReader* run) {
    if (auto docker = run->ReadObject("docker")) {
      docker->set_at("marathon");
      if (const auto image = docker->ReadText("image"))
        builder_->SetImage(*image, *role_, &*docker);
      ReadRights(&*docker, "forcePullImage");
      for (FieldReader& parameter : docker->ReadObjects("parameters")) {
        const std::string key = parameter.ReadText("key").value_or("");
        block().parameters.push_back(key + "=" + parameter.ReadText("value").value_or(""));
        parameter.ReportUnread("MetronomeJobRunDockerParameters");
      }
      docker->ReportUnread("MetronomeJobRunDocker");
    }
    if (auto ucr = run->ReadObject("ucr")) {
      ucr->set_at("marathon");
      block().containerizer = "mesos";
      if (auto image = ucr->ReadObject("image")) {
        if (const auto id = image->ReadText("id")) builder_->SetImage(*id, *role_, &*image);
        image->ReadChoice("kind", {"docker"});
        if (image->ReadFlag("forcePull").value_or(false)) block().force_pull = true;
        image->ReportUnread("MetronomeJobRunUcrImage");
      }
      ReadRights(&*ucr, "forcePull");
      ucr->ReportUnread("MetronomeJobRunUcr");
    }
  }

  void ReadRights(FieldReader* container, const std::string& pull) {
    if (container->ReadFlag(pull).value_or(false)) block().force_pull = true;
    if (container->ReadFlag("privileged").value_or(false)) block().privileged = true;
  }

  // [{attribute, operator, value}] → "rack:LIKE:r1".
  void ReadPlacement(FieldReader* run) {
    auto placement = run->ReadObject("placement");
    if (!placement) return;
    for (FieldReader& one : placement->ReadObjects("constraints")) {
      const std::string attribute = one.ReadText("attribute").value_or("");
      const std::string how = one.ReadText("operator").value_or("");
      const std::string value = one.ReadText("value").value_or("");
      one.ReportUnread("MetronomeJobRunPlacementConstraints");
      if (block().constraints.size() < kMostTexts && attribute.find(':') == std::string::npos) {
        block().constraints.push_back(attribute + ":" + (how == "EQ" ? "IS" : how) +
                                      (value.empty() ? "" : ":" + value));
      }
    }
    if (!block().constraints.empty()) {
      placement->set_at("marathon.constraints");
      placement->AddLossExceptOn(
          "marathon", "constraints",
          "where its task runs is kept in marathon.constraints" + std::string(kHeeds));
    }
    placement->ReportUnread("MetronomeJobRunPlacement");
  }

  void ReadArtifacts(FieldReader* run) {
    for (FieldReader& artifact : run->ReadObjects("artifacts")) {
      artifact.set_at("marathon.fetch");
      if (const auto uri = artifact.ReadText("uri"); uri && block().fetch.size() < kMostTexts)
        block().fetch.push_back(*uri);
      artifact.ReportUnread("MetronomeJobRunArtifacts");
    }
    if (block().fetch.empty()) return;
    run->set_at("marathon.fetch");
    run->AddLossExceptOn("marathon", "artifacts",
                         "what it downloads is kept in marathon.fetch" + std::string(kHeeds) +
                             ": have it on the machine there");
    if (!role_->command.empty()) PrependStatement("cd \"${MESOS_SANDBOX:-.}\"", role_);
  }

  void ReadVolumes(FieldReader* run) {
    for (FieldReader& volume : run->ReadObjects("volumes")) {
      volume.set_at("container.volumes");
      const std::string target = volume.ReadText("containerPath").value_or("");
      const std::string source = volume.ReadText("hostPath").value_or("");
      const bool read_only = volume.ReadChoice("mode", {"RO", "RW"}).value_or("RW") == "RO";
      if (volume.HasField("secret")) {
        volume.ReadNode("secret");
        volume.AddLoss("secret", "the program found a secret at " + target +
                                     "; not kept: give it as a variable, with marathon.secrets");
      } else if (source.starts_with('/') && target.starts_with('/') &&
                 builder_->job()->container.volumes.size() < kMostTexts) {
        builder_->job()->container.volumes.push_back(source + ":" + target +
                                                     (read_only ? ":ro" : ""));
        if (source != target) {
          volume.AddLoss("containerPath",
                         "the program found the host's " + source + " at " + target +
                             "; kept in container.volumes, and without containers it sees the "
                             "machine's own files; let it read " +
                             source);
        }
      } else {
        volume.AddLoss("containerPath", "the program found a volume at " + target +
                                            "; not kept: have the data at that path");
      }
      volume.ReportUnread("MetronomeJobRunVolumes");
    }
  }

  void ReadSchedules(FieldReader* all) {
    bool first = true;
    for (FieldReader& one : all->ReadObjects("schedules")) {
      one.set_at("schedule");
      if (!std::exchange(first, false)) {
        one.AddLoss(
            "", "not kept: a job has one schedule; put each into a file with a name of its own");
        continue;
      }
      job::Schedule& schedule = builder_->job()->schedule;
      schedule.cron = one.ReadText("cron").value_or("");
      schedule.time_zone = one.ReadText("timezone").value_or("UTC");
      schedule.enabled = one.ReadFlag("enabled").value_or(true);
      const auto policy = one.ReadChoice("concurrencyPolicy", {"ALLOW", "FORBID"});
      schedule.concurrency = policy.value_or("ALLOW") == "ALLOW" ? job::Concurrency::kAllow
                                                                 : job::Concurrency::kForbid;
      if (const auto deadline = one.ReadInteger("startingDeadlineSeconds", 1, 31'536'000))
        schedule.start_deadline = std::chrono::seconds(*deadline);
      one.ReportUnread("MetronomeJobSchedule", kSchedule);
      one.AddLoss("",
                  "it ran at its times; `shoal schedule` has it run at them, `shoal run` runs it "
                  "once, now",
                  true);
    }
  }

  const job::Node& document_;
  JobBuilder* const builder_;
  job::Role* role_ = nullptr;
  std::map<std::string, std::string> sources_;  // of secrets
};

class Metronome : public Importer {
 public:
  std::string DetectKind(const job::Node& document) const override {
    if (document.kind != job::Node::Kind::kMap || document.Find("apiVersion") != nullptr) return "";
    const job::Node* run = document.Find("run");
    const bool is =
        document.Find("id") != nullptr && run != nullptr && run->kind == job::Node::Kind::kMap;
    return is ? "Metronome job" : "";
  }
  void Import(const job::Node& document, JobBuilder* builder) const override {
    MetronomeReader(document, builder).Run();
  }
};

}  // namespace

const Importer& MetronomeImporter() {
  static const Metronome importer;
  return importer;
}

}  // namespace shoal::importer
