// The framework's requirements on roles, ports and variables. They reject jobs whose cluster could
// never form before anything starts.
#include <algorithm>

#include "job/file/decode.h"
#include "job/spec/enum_names.h"
#include "job/spec/framework.h"

namespace shoal::job {
namespace {

struct Bound {
  Framework framework;
  const char* role;
  int least;  // replicas, if the role is there or `required`
  int most;
  bool required;
  const char* why;
};

constexpr int kMany = kMaxReplicas;
constexpr Bound kBounds[] = {
    {Framework::kTensorflow, "chief", 0, 1, false, "one chief leads the job"},
    {Framework::kTensorflow, "master", 0, 1, false, "one master leads the job"},
    {Framework::kTensorflow, "evaluator", 0, 1, false, "one evaluator reads the checkpoints"},
    {Framework::kPytorch, "master", 0, 1, false, "its process has rank 0"},
    {Framework::kPsLite, "worker", 1, kMany, true, "ps-lite waits for workers and servers"},
    {Framework::kPsLite, "server", 1, kMany, true, "ps-lite waits for workers and servers"},
    {Framework::kPsLite, "scheduler", 1, 1, false, "one scheduler gives out the ranks"},
    {Framework::kSpark, "driver", 1, 1, true, "the driver is the program whose end is the job's"},
    {Framework::kSpark, "worker", 1, kMany, true, "workers run what the driver asks for"},
    {Framework::kSpark, "master", 1, 1, false, "one master leads the cluster"},
    {Framework::kHorovod, "rendezvous", 1, 1, false, "one store lets the ranks meet"},
    {Framework::kMpi, "launcher", 1, 1, false, "its program calls mpirun"},
    {Framework::kMpi, "worker", 1, kMany, true, "mpirun starts the ranks in them"},
    {Framework::kRabit, "tracker", 1, 1, false, "one tracker gives out the ranks"},
};

std::string Number(int count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

class FrameworkValidator {
 public:
  FrameworkValidator(const JobDraft& draft, Errors* errors)
      : draft_(draft),
        job_(draft.job),
        errors_(errors),
        name_(NameOfValue(kFrameworks, job_.framework)) {}

  void Run() {
    for (const Bound& bound : kBounds) {
      if (bound.framework == job_.framework) CheckBound(bound);
    }
    if (job_.framework == Framework::kTensorflow && job_.FindRole("chief") != nullptr &&
        job_.FindRole("master") != nullptr) {
      Wrong("roles.master", "got a master beside a chief, expected one of them to lead the job");
    }
    if (job_.framework == Framework::kShoal) CheckDataNames();
    CheckVariables("env", job_.env);
    const std::vector<std::string> ranked = RankedRoles(job_);
    for (const Role& role : job_.roles) {
      CheckVariables("roles." + role.name + ".env", role.env);
      const bool takes_part = !CountsRanks(job_.framework) ||
                              std::find(ranked.begin(), ranked.end(), role.name) != ranked.end();
      if (takes_part && role.ports.empty() && !PresetPort(job_.framework, role.name).empty()) {
        Wrong("roles." + role.name + ".ports", "got no port, expected one for framework " + name_ +
                                                   "; leave the field out to get it");
      }
    }
  }

 private:
  void Wrong(const std::string& path, const std::string& sentence) {
    errors_->Add(draft_.LocationOf(path), path, sentence);
  }

  void CheckBound(const Bound& bound) {
    const std::string path = std::string("roles.") + bound.role;
    const Role* role = job_.FindRole(bound.role);
    if (role == nullptr) {
      if (!bound.required) return;
      return Wrong("roles", std::string("got no role ") + bound.role + ", expected at least " +
                                Number(bound.least, bound.role) + ": " + bound.why);
    }
    if (role->replicas >= bound.least && role->replicas <= bound.most) return;
    const std::string expected = role->replicas < bound.least
                                     ? "at least " + std::to_string(bound.least)
                                     : "at most " + std::to_string(bound.most);
    Wrong(path + ".replicas", "got " + std::to_string(role->replicas) + ", expected " + expected +
                                  " with framework " + name_ + ": " + bound.why);
  }

  // The trainers use every other data set for training, which is rarely the intent of a name like
  // "held_out".
  void CheckDataNames() {
    for (const DataSource& data : job_.data) {
      if (data.name == "train" || data.name == "test" || data.name == "validation") continue;
      Wrong("data." + data.name, "got data " + data.name +
                                     ", expected train, test to measure the model with, or "
                                     "validation to end the training by" +
                                     DidYouMean(data.name, {"train", "test", "validation"}));
    }
  }

  void CheckVariables(const std::string& path, const std::map<std::string, std::string>& env) {
    for (const auto& [name, value] : env) {
      if (!IsSetByFramework(job_.framework, name)) continue;
      Wrong(path,
            "got " + name + ", which framework " + name_ +
                " sets itself from the addresses of the tasks; leave it out, or use framework "
                "generic");
    }
  }

  const JobDraft& draft_;
  const Job& job_;
  Errors* const errors_;
  const std::string name_;
};

}  // namespace

void ValidateFramework(const JobDraft& draft, Errors* errors) {
  FrameworkValidator(draft, errors).Run();
}

}  // namespace shoal::job
