#include "controller/run/task_applier.h"

#include <utility>

#include "rendezvous/bootstrap/bootstrap_files.h"

namespace shoal::controller {

Result<engine::DesiredJob> TaskApplier::Build() const {
  DesiredJobPaths paths = options_.paths;
  if (!paths.shared) {
    TRY_ASSIGN(paths.bootstrap_files, rendezvous::ReadBootstrapFiles(paths.dir.string()));
  }
  return MakeDesiredJob(*options_.job, options_.id, paths, membership_);
}

void TaskApplier::Apply() {
  if (progress_ != Progress::kIdle) {
    progress_ = Progress::kApplyingOld;
    return;
  }
  progress_ = Progress::kApplying;
  auto desired = Build();
  if (!desired.ok()) return OnApplied(desired.status());
  options_.calls->Apply(std::move(*desired), [this](const Status& status) { OnApplied(status); });
}

void TaskApplier::OnApplied(const Status& status) {
  const bool again = std::exchange(progress_, Progress::kIdle) == Progress::kApplyingOld;
  if (!options_.is_running()) return;
  const bool first = status.ok() && !std::exchange(applied_, true);
  options_.on_applied(status, first);
  if (again && options_.is_running()) Apply();
}

}  // namespace shoal::controller
