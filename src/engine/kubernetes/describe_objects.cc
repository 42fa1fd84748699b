// The text that `shoal plan --engine kubernetes` prints.
#include <algorithm>

#include "engine/kubernetes/network_policy.h"
#include "engine/kubernetes/objects.h"
#include "engine/kubernetes/plan_jobs.h"
#include "job/execution/plan.h"
#include "job/text/yaml_emitter.h"

namespace shoal::engine::kubernetes {
namespace {

void HideValues(json::value* value) {
  if (value->is_array()) {
    for (json::value& item : value->get_array()) HideValues(&item);
    return;
  }
  if (!value->is_object()) return;
  json::object& object = value->get_object();
  const std::string name = GetStringOr(object, "name", "");
  for (auto& field : object) {
    if (field.value().is_string()) {
      const std::string text(field.value().get_string());
      const bool secret = field.key() == "value" && job::LooksSecret(name);
      field.value() = secret ? "***" : job::HideSecrets(text);
    } else {
      HideValues(&field.value());
    }
  }
}

std::string Print(json::object object) {
  if (json::value* data = object.if_contains("data"); data != nullptr && data->is_object()) {
    for (auto& field : data->get_object()) field.value() = "***";
  }
  json::value hidden(std::move(object));
  HideValues(&hidden);
  return "---\n" + job::EmitYaml(job::FromJson(hidden), {});
}

}  // namespace

std::string DescribeObjects(const ObjectOptions& options, const DesiredJob& job,
                            const std::string& name_space) {
  const JobChanges changes = PlanJobs(options, job, name_space, {}, {});
  std::string text =
      "# In namespace " + name_space +
      ", by server-side apply, in this order. The first Job, whose uid is the owner of all\n"
      "# else, is made suspended, and goes on once the Secret is there.\n";
  const Owner none;
  const Owner owner{changes.make.empty() ? "" : changes.make[0].name, "(its uid)"};
  for (size_t i = 0; i < changes.make.size(); ++i) {
    text += Print(JobObject(options, job, changes.make[i], i == 0 ? none : owner, i == 0));
    if (i > 0) continue;
    if (auto secret = SecretObject(job, owner); secret) text += Print(std::move(*secret));
    for (json::object& policy : NetworkPolicyObjects(job, owner)) text += Print(std::move(policy));
    text += Print(ServiceObject(job, owner));
  }
  return text + "# To remove all of it:\n#   kubectl -n " + name_space +
         " delete jobs,services,secrets,pods -l " + kJobLabel + "=" + job.job_id + "\n";
}

}  // namespace shoal::engine::kubernetes
