#include "job/job.h"

namespace shoal::job {

const Role* Job::FindRole(const std::string& role) const {
  for (const Role& candidate : roles) {
    if (candidate.name == role) return &candidate;
  }
  return nullptr;
}

}  // namespace shoal::job
