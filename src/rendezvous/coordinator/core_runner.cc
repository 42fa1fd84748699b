#include "rendezvous/coordinator/core_runner.h"

#include <algorithm>
#include <utility>

#include "job/execution/job_dir.h"

namespace shoal::rendezvous {

CoreRunner::CoreRunner(net::Loop* loop, job::Job job, const CoreLimits& limits, Duration beat,
                       std::function<void(const std::string&)> note)
    : loop_(loop),
      clock_(beat, std::move(note), [this] { Handle(Tick{}); }),
      core_(std::move(job), limits) {}

CoreRunner::~CoreRunner() { loop_->Cancel(tick_timer_); }

Result<std::vector<JournalRecord>> CoreRunner::OpenJournal(const std::string& job_dir,
                                                           Duration commit_delay,
                                                           DurabilityGateCallbacks calls) {
  TRY_ASSIGN(auto opened, DurabilityGate::Open(loop_, job_dir, commit_delay, std::move(calls)));
  gate_ = std::move(opened.gate);
  restored_ = !opened.records.empty();
  TRY(core_.Restore(opened.records).With(job::JobDir(job_dir).journal().string()));
  // The job's time goes on from where the journal stands.
  if (restored_) clock_.ResumeFrom(opened.records.back().at);
  return std::move(opened.records);
}

void CoreRunner::Begin(int resumes) {
  begun_ = true;
  Execute(core_.Begin(clock_.Now(), resumes));
  // Records of an earlier coordinator are synced once before anything is told of them.
  if (restored_) gate_->CommitNow();
}

void CoreRunner::Handle(const Event& event) {
  if (ended_ || !begun_) return;
  Execute(core_.Handle(event, clock_.Now()));
}

void CoreRunner::End() {
  ended_ = true;
  if (gate_) gate_->Close();
}

void CoreRunner::Execute(const std::vector<Action>& actions) {
  gate_->Execute(actions);
  ArmTick();
}

void CoreRunner::ArmTick() {
  const auto next = core_.NextDeadline();
  if (ended_ || next == armed_) return;
  loop_->Cancel(std::exchange(tick_timer_, 0));
  armed_ = next;
  if (!next) return;
  tick_timer_ = loop_->After(std::max(*next - clock_.Now(), Millis(0)) + Millis(1), [this] {
    tick_timer_ = 0;
    armed_.reset();
    Handle(Tick{});
    if (tick_timer_ == 0) ArmTick();
  });
}

}  // namespace shoal::rendezvous
