// JobSet (jobset.x-k8s.io): Kubernetes Jobs that start, restart and succeed together. Each
// replicated job becomes a role.
#include "import/kubernetes/job_set.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "import/conversion/importer.h"
#include "import/kubernetes/batch_job.h"
#include "import/kubernetes/job_set_labels.h"
#include "import/kubernetes/pod_hosts.h"
#include "import/kubernetes/pod_settings.h"
#include "import/kubernetes/pod_template.h"

namespace shoal::importer {
namespace {

using job::RestartScope;
using job::RestartWhen;
using job::SuccessRule;

constexpr const char* kIndex = "JOB_COMPLETION_INDEX";
constexpr const char* kOwnIndex = "{{shoal.index}}";

// Imports one JobSetSpec: each replicated job becomes a role; dependencies, restarts and success
// rules apply to the whole set.
class JobSetReader {
 public:
  JobSetReader(const JobSetOptions& ask, JobBuilder* builder) : ask_(ask), builder_(builder) {}

  bool Run(FieldReader* spec) {
    spec_ = &spec->node();
    if (auto failure = spec->ReadObject("failurePolicy")) ReadFailure(&*failure);
    for (FieldReader& one : spec->ReadObjects("replicatedJobs")) ReadReplicated(&one);
    if (roles_.empty()) spec->AddError("replicatedJobs", "got none, expected at least one");
    if (!builder_->diagnostics()->ok()) return false;
    builder_->job()->limits.keep_records = {};  // of its Jobs
    ReadTtl(spec, builder_);
    SetRestarts(spec);
    SetOrder(spec);
    ReadSuccess(spec);
    subdomain_ = builder_->job()->name;
    if (auto network = spec->ReadObject("network")) {
      if (const auto subdomain = network->ReadText("subdomain")) {
        subdomain_ = *subdomain;
        network->AddLoss("subdomain",
                         "the domain of the pods' hosts; not kept: tasks run under their machines' "
                         "names, which variables with a pod's host get",
                         true);
      }
      network->ReportUnread("JobSetSpecNetwork");
    }
    spec->ReportUnread("JobSetSpec");
    ReplaceHosts(spec);
    return true;
  }

 private:
  // A replicated job: its name in the file, its role, and the jobs that it depends on.
  struct Replicated {
    std::string name;
    std::string role;
    int backoff = 0;  // its backoffLimit
    std::vector<std::string> after;
    job::AfterWhen when = job::AfterWhen::kReady;
  };

  void ReadFailure(FieldReader* policy) {
    policy->set_at("limits");
    max_restarts_ =
        static_cast<int>(policy->ReadInteger("maxRestarts", 0, kUnlimitedRestarts).value_or(0));
    policy->ReportUnread("JobSetSpecFailurePolicy");
  }

  void ReadReplicated(FieldReader* one) {
    Replicated replicated;
    replicated.name = one->ReadText("name").value_or("job");
    const auto replicas = one->ReadInteger("replicas", 0, job::kMaxReplicas).value_or(1);
    auto pattern = one->ReadObject("template");
    if (!pattern) {
      return one->AddError("template", "got no template, expected one with the spec of a Job");
    }
    auto metadata = pattern->ReadObject("metadata");
    auto spec = pattern->ReadObject("spec");
    pattern->ReportUnread("JobTemplateSpec");
    if (!spec) return pattern->AddError("spec", "got no spec, expected that of a Job");
    const bool indexed = spec->ReadText("completionMode").value_or("Indexed") == "Indexed";
    job::Limits& limits = builder_->job()->limits;
    limits.restarts.reset();
    const auto deadline = std::exchange(limits.deadline, {});
    const auto known = ask_.jobs.find(replicated.name);
    ReplicatedJobOptions ask = known == ask_.jobs.end() ? ReplicatedJobOptions{} : known->second;
    // Not for jobs beyond the most roles, of which each would read the whole set.
    if (builder_->diagnostics()->ok())
      ask.pod.labels = FindLabels(*spec_, builder_->job()->name, replicated.name);
    if (!ReadJobSpec(&*spec, ask.role.empty() ? replicated.name : ask.role, ask.pod, builder_))
      return;
    ShareDeadline(deadline, &*spec);
    job::Role& role = builder_->job()->roles.back();
    if (!ask.role.empty() && ask.role != replicated.name) {
      one->set_at("roles." + role.name);
      one->AddLoss("name",
                   "the replicated job was called " + job::PrintableText(replicated.name) +
                       "; kept as the role " + role.name + ", by which the framework knows it",
                   true);
    }
    if (metadata) {
      ReadPodMetadata(&*metadata, &role.kubernetes);
      metadata->ReportUnread("PodTemplateMeta");
    }
    replicated.role = role.name;
    replicated.backoff = limits.restarts.value_or(kUnlimitedRestarts);
    if (indexed) role.env.try_emplace(kIndex, kOwnIndex);
    SetCountsOf(replicated, replicas, &role, one);
    if (replicas * role.replicas > job::kMaxTasks) {
      return one->AddError("replicas", "got more than 100,000 tasks, expected fewer");
    }
    role.replicas *= static_cast<int>(replicas);
    ReportOwnPolicies(&*spec, replicated.backoff);
    one->set_at("roles." + role.name);
    ReadDependencies(one, &replicated);
    one->ReportUnread("JobSetSpecReplicatedJobs");
    roles_.push_back(std::move(replicated));
  }

  // `others`: the deadline of the preceding Jobs; 0: none.
  void ShareDeadline(std::chrono::milliseconds others, FieldReader* spec) {
    auto& deadline = builder_->job()->limits.deadline;
    if (deadline.count() > 0) {
      spec->set_at("limits.deadline");
      spec->AddLoss(
          "activeDeadlineSeconds",
          "it ended this Job, and the set by it; kept as the time for all of the job, the "
          "shortest of all Jobs, from the start of its first task");
    }
    const bool shorter = deadline.count() == 0 || others < deadline;
    if (others.count() > 0 && shorter) deadline = others;
  }

  // Reports fields of a Job that the set overrides.
  static void ReportOwnPolicies(FieldReader* spec, int backoff) {
    if (spec->HasField("ttlSecondsAfterFinished")) {
      spec->AddLoss("ttlSecondsAfterFinished",
                    "it removed this Job after its end; not kept: that of the set counts", true);
    }
    if (spec->HasField("successPolicy")) {
      spec->AddLoss("successPolicy",
                    "it said when this Job has succeeded; not kept: that of the set counts");
    }
    if (spec->HasField("backoffLimitPerIndex") && backoff == 0) {
      spec->AddLoss(
          "backoffLimitPerIndex",
          "it said how often each index is started again; not kept: backoffLimit 0 ends the "
          "Job with its first failure");
    }
  }

  // Sets the variables that count Jobs and pods; each of several Jobs numbers its pods from 0.
  void SetCountsOf(const Replicated& replicated, int64_t jobs, job::Role* role, FieldReader* one) {
    ReplicatedJobPlace place = FindPlace(*spec_, replicated.name);
    place.jobs = jobs;
    place.pods = role->replicas;
    place.restarts = max_restarts_;
    place.restarts_alone = replicated.backoff > 0;
    const UnsetCounts unset = SetCounts(place, role);
    for (const std::string& name : unset.no_shell) {
      one->AddLoss("replicas", name +
                                   " counted the pods of a Job, the Jobs or the restarts; not "
                                   "kept: the image's own entry point has no shell before it; set "
                                   "roles." +
                                   role->name + ".command");
    }
    for (const std::string& name : unset.restarts) {
      one->AddLoss("template",
                   name +
                       " counted the restarts of the whole set; not kept: tasks start again by "
                       "themselves, and SHOAL_ATTEMPT counts both");
    }
  }

  void ReadDependencies(FieldReader* one, Replicated* replicated) {
    for (FieldReader& other : one->ReadObjects("dependsOn")) {
      replicated->after.push_back(other.ReadText("name").value_or(""));
      const bool ended = other.ReadChoice("status", {"Ready", "Complete"}) == "Complete";
      if (ended) replicated->when = job::AfterWhen::kEnded;
      other.ReportUnread("JobSetDependsOn");
    }
  }

  const Replicated* Find(const std::string& name) const {
    const auto found = std::ranges::find(roles_, name, &Replicated::name);
    return found == roles_.end() ? nullptr : &*found;
  }

  // A failed Job fails the set or restarts all of it.
  void SetRestarts(FieldReader* spec) {
    int64_t sum = max_restarts_;
    for (const Replicated& one : roles_) {
      job::Role* role = builder_->FindRole(one.role);
      sum += one.backoff;
      if (one.backoff == 0) {
        role->restart.when = max_restarts_ > 0 ? RestartWhen::kAlways : RestartWhen::kNever;
        role->restart.limit = max_restarts_;
        builder_->SetScope(role, RestartScope::kJob);
      }
      if (max_restarts_ == 0) continue;
      for (job::ExitRule& rule : role->on_exit) {
        if (rule.action == job::EndAction::kFail) rule.action = job::EndAction::kRestartJob;
      }
    }
    builder_->job()->limits.restarts = static_cast<int>(std::min<int64_t>(sum, 1'000'000));
    const bool pods =
        std::ranges::any_of(roles_, [](const Replicated& one) { return one.backoff > 0; });
    if (!pods) return;
    spec->set_at("limits.restarts");
    spec->AddLoss(
        "replicatedJobs",
        "pods of a Job are started again up to its backoffLimit (6 if not said)" +
            std::string(max_restarts_ > 0
                            ? ", and the whole set up to maxRestarts times after that; "
                              "kept is the former where it is not 0"
                            : "") +
            ": tasks start again by themselves, all together as often as the limits say in "
            "sum");
  }

  void SetOrder(FieldReader* spec) {
    bool in_order = false;
    if (auto startup = spec->ReadObject("startupPolicy")) {
      in_order = startup->ReadChoice("startupPolicyOrder", {"AnyOrder", "InOrder"}) == "InOrder";
      startup->ReportUnread("JobSetSpecStartupPolicy");
    }
    for (size_t i = 0; i < roles_.size(); ++i) {
      job::Role* role = builder_->FindRole(roles_[i].role);
      if (in_order && i > 0) role->after = {{roles_[i - 1].role}, job::AfterWhen::kReady};
      for (const std::string& name : roles_[i].after) {
        const Replicated* other = Find(name);
        if (other == nullptr) {
          spec->AddError("replicatedJobs", "got dependsOn " + job::PrintableText(name) +
                                               ", expected the name of a replicated job");
        } else {
          role->after.roles.push_back(other->role);
          role->after.when = roles_[i].when;
        }
      }
    }
  }

  void ReadSuccess(FieldReader* spec) {
    std::vector<std::string> deciding;
    SuccessRule rule = SuccessRule::kAll;
    if (auto policy = spec->ReadObject("successPolicy")) {
      policy->set_at("success");
      if (policy->ReadChoice("operator", {"All", "Any"}) == "Any") rule = SuccessRule::kAny;
      for (const std::string& name : policy->ReadTexts("targetReplicatedJobs")) {
        const Replicated* one = Find(name);
        if (one != nullptr) deciding.push_back(one->role);
      }
      if (rule == SuccessRule::kAny) {
        policy->AddLoss("operator", "one Job was enough, with all of its pods; kept as one task");
      }
      policy->ReportUnread("JobSetSpecSuccessPolicy");
    }
    if (deciding.empty()) {
      for (const Replicated& one : roles_) deciding.push_back(one.role);
    }
    builder_->SetSuccess(rule, deciding);
  }

  // Pods have the host name SET-JOB-INDEX-POD.SUBDOMAIN, which commands and variables contain.
  void ReplaceHosts(FieldReader* spec) {
    std::vector<PodHosts> pods;
    for (const Replicated& one : roles_) {
      const std::string prefix = builder_->job()->name + "-" + one.name + "-";
      pods.push_back({one.role, prefix, prefix + "0-0", subdomain_});
    }
    ReplacePodHosts(pods, spec, builder_);
  }

  const JobSetOptions& ask_;
  JobBuilder* const builder_;
  const job::Node* spec_ = nullptr;
  std::vector<Replicated> roles_;
  std::string subdomain_;  // of the pods' host names
  int max_restarts_ = 0;
};

class JobSet final : public Importer {
 public:
  std::string DetectKind(const job::Node& document) const override {
    const job::Node* kind = document.Find("kind");
    const job::Node* version = document.Find("apiVersion");
    const bool ours = kind != nullptr && version != nullptr && kind->text == "JobSet" &&
                      version->text.starts_with("jobset.x-k8s.io/");
    return ours ? "JobSet" : "";
  }
  void Import(const job::Node& node, JobBuilder* builder) const override {
    FieldReader document(node, "", "", builder->diagnostics());
    builder->job()->framework = job::Framework::kGeneric;
    ReadMetadata(&document, builder);
    auto spec = document.ReadObject("spec");
    document.ReportUnread("JobSet");
    if (!spec) return document.AddError("spec", "got no spec, expected one with replicatedJobs");
    ReadJobSetSpec(&*spec, {}, builder);
  }
};

}  // namespace

bool ReadJobSetSpec(FieldReader* spec, const JobSetOptions& ask, JobBuilder* builder) {
  return JobSetReader(ask, builder).Run(spec);
}

const Importer& JobSetImporter() {
  static const JobSet importer;
  return importer;
}

}  // namespace shoal::importer
