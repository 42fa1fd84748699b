// A job of Metronome (JSON, which is read as YAML): one command with its schedules.
#include <algorithm>
#include <cmath>
#include <utility>

#include "dialect/import/importer.h"
#include "dialect/import/marathon_settings.h"

namespace shoal::dialect {
namespace {

using job::RestartWhen;

constexpr int kForEver = 1000;
constexpr size_t kMostTexts = 256;
constexpr std::string_view kHeeds = "; the engine marathon heeds it, other engines do not";

// What its API adds to a job when it tells of one.
constexpr Unkept kJob[] = {
    {"historySummary", "how earlier runs went", "a new run has its own record", true},
    {"activeRuns", "which runs there are", "a new run has its own record", true},
    {"history", "how earlier runs went", "a new run has its own record", true},
};

constexpr Unkept kSchedule[] = {
    {"nextRunAt", "when it runs next", "`shoal schedule` says when", true}};

class Reader {
 public:
  Reader(const job::Node& document, JobBuilder* builder) : document_(document), builder_(builder) {}

  void Run() {
    Section all(document_, "", "", builder_->notes());
    const std::string id = all.Text("id").value_or("");
    builder_->SetName(PlainName(id, 63));
    builder_->job()->framework = job::Framework::kGeneric;
    role_ = builder_->AddRole("task", all.PlaceOf("id"), "id");
    builder_->SetSuccess(job::SuccessRule::kAll, {role_->name});
    if (auto run = all.Sub("run")) ReadRun(&*run);
    ReadSchedules(&all);
    for (Section& other : all.Subs("dependencies")) {
      other.Lose("id", "it was run after " + job::Shown(other.Text("id").value_or("")) +
                           " had succeeded; not kept: a job knows no others");
      other.Rest("MetronomeJobDependencies");
    }
    all.Rest("MetronomeJob", kJob);
  }

 private:
  job::Marathon& block() { return builder_->job()->marathon; }
  std::string At(const char* field) const { return "roles." + role_->name + "." + field; }

  void ReadRun(Section* run) {
    run->set_at(At("resources"));
    role_->resources.cpu = run->Number("cpus", 0, job::kMaxCpus).value_or(1);
    const double mib = run->Number("mem", 0, 1 << 24).value_or(128);
    role_->resources.memory_bytes = static_cast<int64_t>(std::ceil(mib)) << 20;
    role_->resources.gpu = static_cast<int>(run->Integer("gpus", 0, job::kMaxGpus).value_or(0));
    ReadSecrets(run);
    ReadEnvironment(run);
    ReadImages(run);
    ReadCommand(run);
    ReadRestart(run);
    ReadPlacement(run);
    ReadArtifacts(run);
    ReadVolumes(run);
    block().user = run->Text("user").value_or("");
    if (const auto delay = run->Integer("maxLaunchDelay", 1, 31'536'000))
      builder_->job()->limits.gather = std::chrono::seconds(*delay);
    if (const auto grace = run->Number("taskKillGracePeriodSeconds", 0, 3600)) {
      builder_->job()->limits.stop_grace =
          std::chrono::milliseconds(static_cast<int64_t>(std::llround(*grace * 1000)));
    }
    run->set_at("roles." + role_->name);
    ReadDisk(run);
    TellNetworks(run, "MetronomeJobRunNetworks");
    run->Rest("MetronomeJobRun");
  }

  void ReadDisk(Section* run) {
    const double mib = run->Number("disk", 0, 1e12).value_or(0);
    if (mib == 0) return;
    run->Lose("disk", "it might use " + std::to_string(std::llround(mib)) +
                          " MiB of disk; not kept: tasks use their machine's disk");
  }

  void ReadCommand(Section* run) {
    const auto line = run->Text("cmd");
    const std::vector<std::string> words = run->Texts("args");
    run->set_at(At("command"));
    if (line && !line->empty()) {
      role_->command = {"sh", "-c", *line};
      if (!words.empty()) run->Lose("args", "not kept: cmd is what runs");
      return;
    }
    builder_->SetEntryPoint(role_, words, run, words.empty() ? "" : "args");
  }

  void ReadRestart(Section* run) {
    role_->restart.when = RestartWhen::kNever;
    builder_->Given(At("restart.when"));
    auto restart = run->Sub("restart");
    if (!restart) return;
    restart->set_at(At("restart"));
    if (restart->Choice("policy", {"NEVER", "ON_FAILURE"}).value_or("NEVER") == "ON_FAILURE") {
      role_->restart.when = RestartWhen::kAlways;
      role_->restart.limit = kForEver;
    }
    if (restart->Integer("activeDeadlineSeconds", 0, 31'536'000)) {
      restart->Lose("activeDeadlineSeconds",
                    "it said for how long a run that fails is started again; not kept: it is "
                    "started again " +
                        std::to_string(kForEver) + " times at most; set restart.limit");
    }
    restart->Rest("MetronomeJobRunRestart");
  }

  void ReadEnvironment(Section* run) {
    auto env = run->Sub("env");
    if (!env) return;
    env->set_at(At("env"));
    for (const auto& [key, node] : env->All()) {
      if (node->kind == job::Node::Kind::kScalar) {
        builder_->SetVariable(role_, key.text, node->text, &*env);
        continue;
      }
      const job::Node* name = node->kind == job::Node::Kind::kMap ? node->Find("secret") : nullptr;
      const auto source = name == nullptr ? sources_.end() : sources_.find(name->text);
      const bool known = source != sources_.end() && IsVariableName(key.text);
      if (known) block().secrets[key.text] = source->second;
      if (known) {
        env->KeepFor("marathon", key.text,
                     "it comes from the secret " + job::Shown(source->second) +
                         ", kept in marathon.secrets" + std::string(kHeeds) + ": give them " +
                         env->at() + "." + key.text);
      } else {
        env->Lose(key.text, "its value is no text; not kept: give it with --set " + env->at() +
                                "." + key.text + "=VALUE");
      }
    }
  }

  void ReadSecrets(Section* run) {
    auto secrets = run->Sub("secrets");
    if (!secrets) return;
    for (const auto& [key, node] : secrets->All()) {
      if (node->kind != job::Node::Kind::kMap) continue;
      Section one(*node, secrets->PathOf(key.text), "marathon.secrets", builder_->notes());
      if (const auto source = one.Text("source")) sources_[key.text] = *source;
      one.Rest("MetronomeJobRunSecrets");
    }
  }

  void ReadImages(Section* run) {
    if (auto docker = run->Sub("docker")) {
      docker->set_at("marathon");
      if (const auto image = docker->Text("image")) builder_->SetImage(*image, *role_, &*docker);
      ReadRights(&*docker, "forcePullImage");
      for (Section& parameter : docker->Subs("parameters")) {
        const std::string key = parameter.Text("key").value_or("");
        block().parameters.push_back(key + "=" + parameter.Text("value").value_or(""));
        parameter.Rest("MetronomeJobRunDockerParameters");
      }
      docker->Rest("MetronomeJobRunDocker");
    }
    if (auto ucr = run->Sub("ucr")) {
      ucr->set_at("marathon");
      block().containerizer = "mesos";
      if (auto image = ucr->Sub("image")) {
        if (const auto id = image->Text("id")) builder_->SetImage(*id, *role_, &*image);
        image->Choice("kind", {"docker"});
        if (image->Flag("forcePull").value_or(false)) block().force_pull = true;
        image->Rest("MetronomeJobRunUcrImage");
      }
      ReadRights(&*ucr, "forcePull");
      ucr->Rest("MetronomeJobRunUcr");
    }
  }

  void ReadRights(Section* container, const std::string& pull) {
    if (container->Flag(pull).value_or(false)) block().force_pull = true;
    if (container->Flag("privileged").value_or(false)) block().privileged = true;
  }

  // [{attribute, operator, value}] → "rack:LIKE:r1".
  void ReadPlacement(Section* run) {
    auto placement = run->Sub("placement");
    if (!placement) return;
    for (Section& one : placement->Subs("constraints")) {
      const std::string attribute = one.Text("attribute").value_or("");
      const std::string how = one.Text("operator").value_or("");
      const std::string value = one.Text("value").value_or("");
      one.Rest("MetronomeJobRunPlacementConstraints");
      if (block().constraints.size() < kMostTexts && attribute.find(':') == std::string::npos) {
        block().constraints.push_back(attribute + ":" + (how == "EQ" ? "IS" : how) +
                                      (value.empty() ? "" : ":" + value));
      }
    }
    if (!block().constraints.empty()) {
      placement->set_at("marathon.constraints");
      placement->KeepFor(
          "marathon", "constraints",
          "where its task runs is kept in marathon.constraints" + std::string(kHeeds));
    }
    placement->Rest("MetronomeJobRunPlacement");
  }

  void ReadArtifacts(Section* run) {
    for (Section& artifact : run->Subs("artifacts")) {
      artifact.set_at("marathon.fetch");
      if (const auto uri = artifact.Text("uri"); uri && block().fetch.size() < kMostTexts)
        block().fetch.push_back(*uri);
      artifact.Rest("MetronomeJobRunArtifacts");
    }
    if (block().fetch.empty()) return;
    run->set_at("marathon.fetch");
    run->KeepFor("marathon", "artifacts",
                 "what it downloads is kept in marathon.fetch" + std::string(kHeeds) +
                     ": have it on the machine there");
    if (!role_->command.empty()) SayBefore("cd \"${MESOS_SANDBOX:-.}\"", role_);
  }

  void ReadVolumes(Section* run) {
    for (Section& volume : run->Subs("volumes")) {
      volume.set_at("container.volumes");
      const std::string target = volume.Text("containerPath").value_or("");
      const std::string source = volume.Text("hostPath").value_or("");
      const bool read_only = volume.Choice("mode", {"RO", "RW"}).value_or("RW") == "RO";
      if (volume.Has("secret")) {
        volume.Take("secret");
        volume.Lose("secret", "the program found a secret at " + target +
                                  "; not kept: give it as a variable, with marathon.secrets");
      } else if (source.starts_with('/') && target.starts_with('/') &&
                 builder_->job()->container.volumes.size() < kMostTexts) {
        builder_->job()->container.volumes.push_back(source + ":" + target +
                                                     (read_only ? ":ro" : ""));
        if (source != target) {
          volume.Lose("containerPath",
                      "the program found the host's " + source + " at " + target +
                          "; kept in container.volumes, and without containers it sees the "
                          "machine's own files; let it read " +
                          source);
        }
      } else {
        volume.Lose("containerPath", "the program found a volume at " + target +
                                         "; not kept: have the data at that path");
      }
      volume.Rest("MetronomeJobRunVolumes");
    }
  }

  void ReadSchedules(Section* all) {
    bool first = true;
    for (Section& one : all->Subs("schedules")) {
      one.set_at("schedule");
      if (!std::exchange(first, false)) {
        one.Lose("",
                 "not kept: a job has one schedule; put each into a file with a name of its own");
        continue;
      }
      job::Schedule& schedule = builder_->job()->schedule;
      schedule.cron = one.Text("cron").value_or("");
      schedule.time_zone = one.Text("timezone").value_or("UTC");
      schedule.enabled = one.Flag("enabled").value_or(true);
      const auto policy = one.Choice("concurrencyPolicy", {"ALLOW", "FORBID"});
      schedule.concurrency = policy.value_or("ALLOW") == "ALLOW" ? job::Concurrency::kAllow
                                                                 : job::Concurrency::kForbid;
      if (const auto deadline = one.Integer("startingDeadlineSeconds", 1, 31'536'000))
        schedule.start_deadline = std::chrono::seconds(*deadline);
      one.Rest("MetronomeJobSchedule", kSchedule);
      one.Lose("",
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
  std::string Recognise(const job::Node& document) const override {
    if (document.kind != job::Node::Kind::kMap || document.Find("apiVersion") != nullptr) return "";
    const job::Node* run = document.Find("run");
    const bool is =
        document.Find("id") != nullptr && run != nullptr && run->kind == job::Node::Kind::kMap;
    return is ? "Metronome job" : "";
  }
  void Import(const job::Node& document, JobBuilder* builder) const override {
    Reader(document, builder).Run();
  }
};

}  // namespace

const Importer& MetronomeImporter() {
  static const Metronome importer;
  return importer;
}

}  // namespace shoal::dialect
