#include "import/conversion/common_settings.h"

#include <algorithm>
#include <map>
#include <string>

namespace shoal::importer {
namespace {

// Moves a setting to the job if all roles have the same value.
template <typename Member>
void HoistCommon(Member job::PodSettings::*member, job::Job* job) {
  const Member first = job->roles.front().kubernetes.*member;
  const bool same = std::ranges::all_of(
      job->roles, [&](const job::Role& role) { return role.kubernetes.*member == first; });
  if (!same || first == Member()) return;
  for (job::Role& role : job->roles) role.kubernetes.*member = {};
  job->kubernetes.*member = first;
}

// As above, for each key of a map.
void HoistCommonTexts(std::map<std::string, std::string> job::PodSettings::*member, job::Job* job) {
  const std::map<std::string, std::string> first = job->roles.front().kubernetes.*member;
  for (const auto& [name, value] : first) {
    const bool same = std::ranges::all_of(job->roles, [&](const job::Role& role) {
      const auto& texts = role.kubernetes.*member;
      const auto found = texts.find(name);
      return found != texts.end() && found->second == value;
    });
    if (!same) continue;
    for (job::Role& role : job->roles) (role.kubernetes.*member).erase(name);
    (job->kubernetes.*member)[name] = value;
  }
}

}  // namespace

void HoistCommonSettings(job::Job* job) {
  if (job->roles.empty()) return;
  using job::PodSettings;
  HoistCommon(&PodSettings::node_selector, job);
  HoistCommon(&PodSettings::tolerations, job);
  HoistCommon(&PodSettings::image_pull_secrets, job);
  HoistCommon(&PodSettings::priority_class, job);
  HoistCommon(&PodSettings::affinity, job);
  HoistCommon(&PodSettings::topology_spread, job);
  HoistCommon(&PodSettings::security_context, job);
  // Security settings stay with the roles that have them, whatever roles a framework adds.
  const std::string& first = job->roles.front().kubernetes.container_security_context;
  const bool rights = first.find("\"privileged\":true") != std::string::npos ||
                      first.find("\"add\":") != std::string::npos;
  if (!rights) HoistCommon(&PodSettings::container_security_context, job);
  HoistCommonTexts(&PodSettings::labels, job);
  HoistCommonTexts(&PodSettings::annotations, job);
}

}  // namespace shoal::importer
