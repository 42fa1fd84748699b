// Kubernetes batch/v1 Job and CronJob, indexed or not: one role, whose tasks are the Job's
// completions.
#include "import/kubernetes/batch_job.h"

#include <algorithm>
#include <set>
#include <utility>

#include "import/conversion/importer.h"
#include "import/kubernetes/cron_job.h"
#include "import/kubernetes/pod_template.h"
#include "job/text/units.h"

namespace shoal::importer {
namespace {

using job::RestartWhen;
using job::SuccessRule;

constexpr int kBackoffLimit = 6;
constexpr int kMostCodes = 255;
constexpr size_t kMostRules = 64;
constexpr std::chrono::seconds kBackoff{10};
constexpr std::chrono::seconds kLongestBackoff{360};

// Reads one JobSpec into one role.
class JobSpecReader {
 public:
  JobSpecReader(std::string role, const PodOptions& options, JobBuilder* builder)
      : name_(std::move(role)), options_(options), builder_(builder) {}

  bool Run(FieldReader* spec) {
    ReadTask(spec);
    if (!builder_->diagnostics()->ok()) return false;
    ReadLimits(spec);
    ReportRestarts(spec);
    if (auto policy = spec->ReadObject("podFailurePolicy")) ReadFailures(&*policy);
    ReadSuccess(spec);
    spec->ReportUnread("JobSpec");
    return true;
  }

 private:
  job::Role* role() const { return builder_->FindRole(name_); }
  std::string At(const char* field) const { return "roles." + name_ + field; }

  // The role from the pod template.
  void ReadTask(FieldReader* spec) {
    job::Role* task = builder_->AddRole(name_, spec->place(), spec->path());
    name_ = task->name;
    ReadReplicas(spec, task);
    spec->set_at(At(""));
    auto pod_template = spec->ReadObject("template");
    if (!pod_template) {
      return spec->AddError("template", "got no template, expected one with the pod's containers");
    }
    const PodSummary pod = ReadPod(&*pod_template, options_, task, builder_);
    in_place_ = pod.restart_policy == "OnFailure";
    if (pod.restart_policy == "Always" || pod.restart_policy == "ExitCode") {
      return spec->AddError("template", "got restartPolicy " +
                                            job::PrintableText(pod.restart_policy) +
                                            ", expected Never or OnFailure, as a Job has it");
    }
    const bool indexed = spec->ReadChoice("completionMode", {"NonIndexed", "Indexed"}) == "Indexed";
    if (indexed) task->env.try_emplace("JOB_COMPLETION_INDEX", "{{shoal.index}}");
  }

  void ReadReplicas(FieldReader* spec, job::Role* task) {
    const auto completions = spec->ReadInteger("completions", 0, job::kMaxReplicas);
    const auto parallelism = spec->ReadInteger("parallelism", 0, job::kMaxReplicas);
    task->replicas = static_cast<int>(completions.value_or(parallelism.value_or(1)));
    spec->set_at(At(".replicas"));
    if (completions && parallelism.value_or(1) < *completions) {
      spec->AddLoss("parallelism", std::to_string(parallelism.value_or(1)) +
                                       " pods ran at once (parallelism), one after another until " +
                                       std::to_string(*completions) +
                                       " had succeeded; not kept: all tasks start together");
    } else if (!completions && parallelism.value_or(1) > 1) {
      spec->AddLoss(
          "parallelism",
          "the job completed when one pod (of parallelism) had succeeded and all had ended; "
          "not kept: it succeeds when all tasks have");
    } else if (parallelism == 0) {
      spec->AddLoss("parallelism",
                    "0 suspends the job; not kept: it starts when the queue admits it");
    }
  }

  void ReadLimits(FieldReader* spec) {
    if (const auto seconds = spec->ReadInteger("activeDeadlineSeconds", 0, 31'536'000)) {
      builder_->job()->limits.deadline = std::chrono::seconds(*seconds);
    }
    ReadTtl(spec, builder_);
    const auto all = spec->ReadInteger("backoffLimit", 0, INT32_MAX);
    const auto each = spec->ReadInteger("backoffLimitPerIndex", 0, INT32_MAX);
    job::Restart& restart = role()->restart;
    restart.when = RestartWhen::kAlways;
    restart.limit =
        static_cast<int>(std::min<int64_t>(each.value_or(kUnlimitedRestarts), kUnlimitedRestarts));
    restart.backoff = kBackoff;
    restart.backoff_max = kLongestBackoff;
    builder_->SetScope(role(), job::RestartScope::kTask);
    if (all || !each) {
      builder_->job()->limits.restarts =
          static_cast<int>(std::min<int64_t>(all.value_or(kBackoffLimit), 1'000'000));
    }
  }

  void ReportRestarts(FieldReader* spec) {
    if (builder_->job()->limits.restarts == 0 || role()->restart.limit == 0) return;
    const std::string there = in_place_ ? "container, with the files of its image"
                                        : "pod, whose empty directories were empty";
    spec->AddLoss("template",
                  "a failed program was started again in a new " + there +
                      "; not kept: it is started again in the same container, where "
                      "files that it left are still; let it begin by removing those that "
                      "would mislead it");
  }

  // podFailurePolicy: rules by exit code become `on_exit` rules.
  void ReadFailures(FieldReader* policy) {
    policy->set_at(At(".on_exit"));
    for (FieldReader& rule : policy->ReadObjects("rules")) {
      const auto action = rule.ReadChoice("action", {"FailJob", "FailIndex", "Ignore", "Count"});
      if (auto codes = rule.ReadObject("onExitCodes")) {
        AddRules(&*codes, action == "FailJob" || action == "FailIndex");
        if (action == "FailIndex") {
          rule.AddLoss("action",
                       "FailIndex failed this index, and others went on; not kept: a task "
                       "that fails for good fails the job");
        } else if (action == "Ignore") {
          rule.AddLoss("action",
                       "Ignore started a pod again without counting it; not kept: the "
                       "restart counts");
        }
      }
      rule.ReportUnread("PodFailurePolicyRule");
    }
    policy->ReportUnread("PodFailurePolicy");
  }

  // Adds `on_exit` rules for the listed codes, or, for operator NotIn, for all others.
  void AddRules(FieldReader* codes, bool fails) {
    std::set<int> values;
    for (const std::string& text : codes->ReadTexts("values")) {
      const auto value = job::ParseInteger(text);
      if (!value || *value < 0 || *value > kMostCodes) {
        codes->AddError("values", "got " + job::PrintableText(text) + ", expected exit codes");
      } else {
        values.insert(static_cast<int>(*value));
      }
    }
    const bool others = codes->ReadChoice("operator", {"In", "NotIn"}) == "NotIn";
    codes->ReportUnread("PodFailurePolicyOnExitCodesRequirement");
    const job::EndAction action = fails ? job::EndAction::kFail : job::EndAction::kRetry;
    for (int code = 1; code <= kMostCodes; ++code) {
      if (values.contains(code) == others) continue;
      const int first = code;
      while (code < kMostCodes && values.contains(code + 1) != others) ++code;
      const std::string range = first == code ? "" : "-" + std::to_string(code);
      if (role()->on_exit.size() >= kMostRules) {
        return codes->AddLoss("values", "not kept: a role has at most 64 rules of exit codes");
      }
      role()->on_exit.push_back({std::to_string(first) + range, action});
    }
  }

  void ReadSuccess(FieldReader* spec) {
    builder_->SetSuccess(SuccessRule::kAll, {name_});
    auto policy = spec->ReadObject("successPolicy");
    if (!policy) return;
    policy->set_at("success");
    bool first = true;
    for (FieldReader& rule : policy->ReadObjects("rules")) {
      if (!first) {
        rule.AddLoss("", "a further rule of success; not kept: the first one counts");
        continue;
      }
      first = false;
      const auto count = rule.ReadInteger("succeededCount", 1, job::kMaxTasks);
      const auto indexes = rule.ReadText("succeededIndexes");
      if (indexes == "0" && count.value_or(1) == 1) {
        builder_->SetSuccess(SuccessRule::kFirst, {name_});
      } else if (indexes) {
        rule.AddLoss("succeededIndexes", "the job succeeded with those of its indexes " +
                                             job::PrintableText(*indexes) +
                                             "; not kept: it succeeds when all tasks have");
      } else if (count) {
        builder_->SetSuccess(SuccessRule::kCount, {name_},
                             static_cast<int>(std::min<int64_t>(*count, role()->replicas)));
      }
      rule.ReportUnread("SuccessPolicyRule");
    }
    policy->ReportUnread("SuccessPolicy");
  }

  std::string name_;
  const PodOptions& options_;
  JobBuilder* const builder_;
  bool in_place_ =
      false;  // restartPolicy OnFailure: the pod and its volumes outlive a failure of the program
};

void ReadDocument(const job::Node& node, JobBuilder* builder) {
  FieldReader document(node, "", "", builder->diagnostics());
  builder->job()->framework = job::Framework::kGeneric;
  ReadMetadata(&document, builder);
  const bool repeated = document.ReadText("kind") == "CronJob";
  auto spec = repeated ? ReadCronJob(&document, "CronJobSpec", "JobTemplateSpec", builder)
                       : document.ReadObject("spec");
  document.ReportUnread(repeated ? "CronJob" : "Job");
  if (spec) {
    ReadJobSpec(&*spec, "task", {}, builder);
  } else if (!repeated) {
    document.AddError("spec", "got no spec, expected one with a template");
  }
}

class BatchJob final : public Importer {
 public:
  std::string DetectKind(const job::Node& document) const override {
    const job::Node* kind = document.Find("kind");
    const job::Node* version = document.Find("apiVersion");
    const bool known = kind != nullptr && version != nullptr &&
                       (version->text == "batch/v1" || version->text == "batch/v1beta1");
    if (!known) return "";
    if (kind->text == "CronJob") return "CronJob of Kubernetes";
    return kind->text == "Job" ? "Job of Kubernetes" : "";
  }
  void Import(const job::Node& document, JobBuilder* builder) const override {
    ReadDocument(document, builder);
  }
};

}  // namespace

bool ReadJobSpec(FieldReader* spec, const std::string& role, const PodOptions& options,
                 JobBuilder* builder) {
  return JobSpecReader(role, options, builder).Run(spec);
}

const Importer& BatchJobImporter() {
  static const BatchJob importer;
  return importer;
}

}  // namespace shoal::importer
