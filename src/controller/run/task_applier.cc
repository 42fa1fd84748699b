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

Status TaskApplier::ApplyFirst() {
  TRY_ASSIGN(const engine::DesiredJob desired, Build());
  TRY(options_.engine->Apply(desired));
  applied_ = true;
  return Status::Ok();
}

void TaskApplier::ApplySoon() {
  if (applying_) {
    apply_again_ = true;
    return;
  }
  auto desired = Build();
  if (!desired.ok()) return OnApplied(desired.status());
  applying_ = true;
  options_.calls->Apply(std::move(*desired), [this](const Status& status) {
    options_.tasks->Post([this, status] { OnApplied(status); });
  });
}

void TaskApplier::OnApplied(const Status& status) {
  applying_ = false;
  if (!options_.is_running()) return;
  const bool first = status.ok() && !std::exchange(applied_, true);
  options_.on_applied(status, first);
  if (options_.is_running() && std::exchange(apply_again_, false)) ApplySoon();
}

Status TaskApplier::Reapply() {
  if (options_.engine->HasOwnQueue()) {
    ApplySoon();
    return Status::Ok();
  }
  TRY_ASSIGN(const engine::DesiredJob desired, Build());
  return options_.engine->Apply(desired);
}

}  // namespace shoal::controller
