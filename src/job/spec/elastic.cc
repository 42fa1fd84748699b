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

bool HoldsOnlyCopies(const Job& job, const Role& role) {
  const std::vector<std::string>& words = role.command.empty() ? job.command : role.command;
  if (words.size() < 2 || words[0] != "@shoal") return false;
  if (words[1] == "ps-server") return true;
  if (words[1] != "learn" || words.size() < 3 || words[2] != "server") return false;
  const auto copies = job.learn.find("server_copies");
  return copies == job.learn.end() || copies->second.text == "1";
}

}  // namespace shoal::job
