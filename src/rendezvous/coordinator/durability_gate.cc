#include "rendezvous/coordinator/durability_gate.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/log.h"
#include "job/execution/job_dir.h"
#include "rendezvous/journal/group_committer.h"
#include "rendezvous/journal/journal.h"

namespace shoal::rendezvous {
namespace {

constexpr Duration kJournalRetryInterval = std::chrono::milliseconds(100);

// Batches of actions pass in order. Records of a batch are appended and leave it; the rest is
// carried out at once or, with Action::after, when that record is synced and mirrored. Durable
// records start a commit after `commit_delay`; a verdict starts it at once. While the journal
// cannot be written, all batches wait.
class JournalDurabilityGate final : public DurabilityGate {
 public:
  JournalDurabilityGate(net::Loop* loop, Journal journal, Duration commit_delay, int64_t last_seq,
                        DurabilityGateCallbacks calls)
      : loop_(loop),
        commit_delay_(commit_delay),
        calls_(std::move(calls)),
        journal_(std::move(journal)),
        committer_(GroupCommitter::Make(loop)),
        last_seq_(last_seq) {}

  ~JournalDurabilityGate() override {
    loop_->Cancel(commit_timer_);
    loop_->Cancel(retry_timer_);
  }

  void Execute(const std::vector<Action>& actions) override {
    if (closed_) return;
    waiting_.push_back(actions);
    if (waiting_.size() == 1) ExecuteWaiting();
  }

  void CommitNow() override {
    loop_->Cancel(std::exchange(commit_timer_, 0));
    if (committing_ || closed_) return;  // Committed starts the next one
    committing_ = true;
    std::vector<int> fds;
    const auto kept = calls_.collect_descriptors(&fds);
    fds.push_back(journal_.fd());
    committer_->Sync(std::move(fds), [this, kept, upto = last_seq_](const Status& status) {
      Committed(upto, status);
    });
  }

  void SetMirroredSeq(std::optional<int64_t> seq) override {
    mirrored_seq_ = seq;
    Perform();
  }
  int64_t journal_bytes() const override { return journal_.bytes(); }

  void Close() override {
    closed_ = true;
    loop_->Cancel(std::exchange(commit_timer_, 0));
    loop_->Cancel(std::exchange(retry_timer_, 0));
  }
  int64_t syncs() const override { return committer_->syncs(); }

 private:
  // Batches are handled in order: one that cannot be written now holds up all that follow.
  void ExecuteWaiting() {
    while (!waiting_.empty() && !closed_) {
      if (const Status recorded = Record(&waiting_.front()); !recorded.ok())
        return RetryLater(recorded);
      blocked_since_.reset();
      // Carrying out an action may append further batches.
      const std::vector<Action> actions = std::exchange(waiting_.front(), {});
      PerformOrDefer(actions);
      waiting_.pop_front();
    }
  }

  // Appends the records of a batch and removes them from it.
  Status Record(std::vector<Action>* actions) {
    Status status;
    std::erase_if(*actions, [&](const Action& action) {
      if (!status.ok() || action.kind != Action::Kind::kRecord) return false;
      status = Append(action.record);
      durable_ = durable_ || (status.ok() && action.record.durable());
      return status.ok();
    });
    return status;
  }

  void PerformOrDefer(const std::vector<Action>& actions) {
    for (const Action& action : actions) {
      if (action.after > stored()) {
        deferred_.push_back(action);
      } else if (!closed_) {
        calls_.perform(action);
      }
    }
    if (closed_) return;
    calls_.on_released(released_);
    if (std::exchange(durable_, false)) Commit();
  }

  void RetryLater(const Status& why) {
    const TimePoint now = RealClock::Get()->Now();
    if (!blocked_since_) {
      blocked_since_ = now;
      if (calls_.on_waiting) calls_.on_waiting(why);
    }
    const bool full = why.code() == Code::kResourceExhausted;
    if (now - *blocked_since_ >= (full ? kDiskFullTimeout : kJournalErrorTimeout)) return Fail(why);
    retry_timer_ = loop_->After(kJournalRetryInterval, [this] {
      retry_timer_ = 0;
      ExecuteWaiting();
    });
  }

  Status Append(JournalRecord record) {
    record.wall = FormatWall(RealClock::Get()->Wall());
    TRY(journal_.Append(JournalRecordToText(record)));
    last_seq_ = record.seq;
    urgent_ = urgent_ || record.kind == JournalRecord::Kind::kVerdict;
    calls_.on_record(record);
    if (unsynced_from_ != 0) return Status::Ok();
    if (record.durable()) {
      unsynced_from_ = record.seq;
    } else {
      released_ = record.seq;
    }
    return Status::Ok();
  }

  // The verdict is committed at once.
  void Commit() {
    if (urgent_) return CommitNow();
    if (commit_timer_ != 0 || committing_) return;
    commit_timer_ = loop_->After(commit_delay_, [this] {
      commit_timer_ = 0;
      CommitNow();
    });
  }

  void Committed(int64_t upto, const Status& status) {
    committing_ = false;
    if (closed_) return;
    if (!status.ok()) return Fail(status);
    synced_ = upto;
    released_ = upto;
    unsynced_from_ = last_seq_ > upto ? upto + 1 : 0;
    calls_.on_released(released_);
    Perform();
    if (unsynced_from_ != 0 && !closed_) Commit();
  }

  int64_t stored() const { return mirrored_seq_ ? std::min(synced_, *mirrored_seq_) : synced_; }

  // Carries out what waited for records that are stored by now.
  void Perform() {
    std::vector<Action> ready;
    std::erase_if(deferred_, [&](const Action& action) {
      if (action.after > stored()) return false;
      ready.push_back(action);
      return true;
    });
    for (const Action& action : ready) {
      if (closed_) return;
      calls_.perform(action);
    }
  }

  void Fail(const Status& why) {
    Close();
    calls_.on_failed(why);
  }

  // Constant after construction.
  net::Loop* const loop_;
  const Duration commit_delay_;
  const DurabilityGateCallbacks calls_;

  Journal journal_;
  std::unique_ptr<GroupCommitter> committer_;
  std::deque<std::vector<Action>> waiting_;  // the first one is being handled
  std::optional<TimePoint> blocked_since_;   // since when the journal cannot be written
  bool durable_ = false;                     // the batch being handled has a durable record
  std::vector<Action> deferred_;             // until `after` is synced
  int64_t last_seq_ = 0;
  int64_t synced_ = 0;                   // records up to this number are on disk
  std::optional<int64_t> mirrored_seq_;  // mirrored by controllers up to this number
  int64_t unsynced_from_ = 0;            // the first durable record that is not; 0: none
  int64_t released_ = 0;                 // records up to this number may be published
  bool urgent_ = false;
  bool committing_ = false;
  bool closed_ = false;
  net::Loop::Id commit_timer_ = 0;
  net::Loop::Id retry_timer_ = 0;
};

}  // namespace

Result<DurabilityGate::Opened> DurabilityGate::Open(net::Loop* loop, const std::string& job_dir,
                                                    Duration commit_delay,
                                                    DurabilityGateCallbacks callbacks) {
  TRY_ASSIGN(Journal::Opened opened, Journal::Open(job::JobDir(job_dir).journal().string()));
  if (opened.cut_bytes > 0) {
    LogWarning("cut {} torn bytes off the end of the journal", opened.cut_bytes);
  }
  Opened result;
  for (const std::string& text : opened.records) {
    TRY_ASSIGN(JournalRecord record, JournalRecordFromText(text));
    result.records.push_back(std::move(record));
  }
  const int64_t last = result.records.empty() ? 0 : result.records.back().seq;
  result.gate = std::make_unique<JournalDurabilityGate>(loop, std::move(opened.journal),
                                                        commit_delay, last, std::move(callbacks));
  return result;
}

}  // namespace shoal::rendezvous
