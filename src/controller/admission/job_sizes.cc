#include "controller/admission/job_sizes.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/json.h"

namespace shoal::controller {
namespace {

// The number of tasks that an event gives to a role; 0 for other events.
int SizeIn(const Event& event, const std::string& role) {
  if (event.type != "resized" && event.type != "note") return 0;
  if (GetStringOr(event.body, "role", "") != role) return 0;
  return static_cast<int>(
      std::clamp<int64_t>(GetIntOr(event.body, "replicas", 0), 0, job::kMaxTasks));
}

bool IsOfTheQueue(const Event& event) {
  if (event.type == "resized") return event.body.contains(kResizedBy);
  const std::string end = std::string("(") + kByTheQueue + ")";
  return std::string_view(GetStringOr(event.body, "text", "")).ends_with(end);
}

}  // namespace

SizeHistory SizesOf(const job::Job& job, const std::string& role, std::span<const Event> events) {
  SizeHistory history;
  if (const job::Role* const found = job.FindRole(role)) history.size = found->replicas;
  for (const Event& event : events) {
    history.admissions += event.type == job::NameOf(JobState::kAdmitted) ? 1 : 0;
    const int size = SizeIn(event, role);
    if (size == 0) continue;
    history.size = size;
    if (!IsOfTheQueue(event)) history.wanted = size;
  }
  history.ran = history.admissions > 0;
  return history;
}

std::string FlavorOf(std::span<const Event> events) {
  std::string flavor;
  for (const Event& event : events) {
    if (event.type == job::NameOf(JobState::kAdmitted))
      flavor = GetStringOr(event.body, kFlavorField, "");
  }
  return flavor;
}

job::Job WithSizes(job::Job job, std::span<const Event> events) {
  for (job::Role& role : job.roles) {
    for (const Event& event : events) {
      const int size = SizeIn(event, role.name);
      if (size == 0) continue;
      role.min_replicas = role.least();
      role.max_replicas = role.most();
      role.replicas = size;
    }
  }
  return job;
}

queue::Request BoundsOf(const queue::Request& file, const SizeHistory& history, bool waits) {
  queue::Request request = file;
  if (history.wanted > 0) request.most = std::min(request.most, history.wanted);
  request.least = std::min(request.least, request.most);
  if (!history.ran || history.size <= 0) return request;
  if (!waits) request.most = std::max(request.most, history.size);
  if (waits) request.least = std::clamp(history.size, request.least, request.most);
  return request;
}

}  // namespace shoal::controller
