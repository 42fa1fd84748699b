#include "job/spec/elastic.h"

#include <algorithm>

namespace shoal::job {

std::string ExplainMissingRole(const Job& job) {
  std::string names;
  for (const Role& role : job.roles) names += (names.empty() ? "" : ", ") + role.name;
  return "the job has no such role, expected one of: " + names;
}

std::string ExplainResizeRefusal(const Role& role, int replicas) {
  if (!role.elastic()) return "its job file gives the role neither 'min' nor 'max'";
  const int least = std::max(role.least(), 1);
  if (replicas >= least && replicas <= role.most()) return "";
  return "got " + std::to_string(replicas) + ", expected from " + std::to_string(least) + " to " +
         std::to_string(role.most()) + " ('min' and 'max' of its job file)";
}

}  // namespace shoal::job
