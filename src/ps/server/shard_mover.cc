#include "ps/server/shard_mover.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/fault_injection.h"
#include "base/log.h"
#include "base/mutex.h"
#include "ps/server/shard_service.h"

namespace shoal::ps {
namespace {

constexpr Duration kDialTimeout = std::chrono::seconds(2);
constexpr Duration kRowsTimeout = std::chrono::seconds(30);
// For the last rows, while the shard stands still.
constexpr Duration kLastRowsTimeout = std::chrono::seconds(1);
constexpr Duration kCutTimeout = std::chrono::seconds(60);  // for a checkpoint to be cut
constexpr Duration kRetryEvery = std::chrono::milliseconds(5);
constexpr Duration kLook = std::chrono::microseconds(100);
constexpr uint64_t kUnderWay = 16;  // entries of at most 256 KB
constexpr int kAttempts = 4;
constexpr int kRounds = 20;  // of rows that have changed, until it stands still anyway

}  // namespace

ShardMover::ShardMover(ShardService* shards)
    : shards_(shards), dialer_(shards->context().options), thread_([this] { Run(); }) {}

ShardMover::~ShardMover() { Stop(); }

void ShardMover::Stop() {
  {
    const MutexLock lock(mu_);
    stop_ = true;
    work_.clear();
  }
  wake_.notify_all();
  // The other end may wait for this server, which answers no request any more: its confirmation of
  // our rows waits for its own backup, which is here.
  dialer_.Stop();
  if (thread_.joinable()) thread_.join();
}

bool ShardMover::stopped() {
  const MutexLock lock(mu_);
  return stop_;
}

bool ShardMover::Pause(Duration time) {
  MutexLock lock(mu_);
  return !wake_.wait_for(lock, time, [this]() REQUIRES(mu_) { return stop_; });
}

void ShardMover::Enqueue(const MoveRequest& order, Answer answer) {
  const MutexLock lock(mu_);
  work_.push_back([this, order, answer = std::move(answer)] {
    MoveReport report;
    Status status;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      status = MoveOne(order, &report);
      rows_ = first_ = nullptr;
      if (status.code() != Code::kAborted) break;
    }
    status = status.With(fmt::format("moving shard {}", order.shard));
    std::string body;
    ByteWriter writer(&body);
    writer.Put(report.bytes);
    writer.Put(report.stalled_us);
    Lane::Guard guard(shards_->context().first_lane());
    answer(status, body);
  });
  wake_.notify_all();
}

void ShardMover::Announce() {
  const MutexLock lock(mu_);
  work_.push_back([this] { NotifyAll(); });
  wake_.notify_all();
}

void ShardMover::Run() {
  for (;;) {
    std::function<void()> work;
    {
      MutexLock lock(mu_);
      wake_.wait(lock, [this]() REQUIRES(mu_) { return stop_ || !work_.empty(); });
      if (stop_) return;
      work = std::move(work_.front());
      work_.pop_front();
    }
    work();
  }
}

Hello ShardMover::HelloTo(int server, uint32_t lane) const {
  return MakeMoveHello(shards_->context().options, server, lane);
}

Status ShardMover::MoveOne(const MoveRequest& order, MoveReport* report) {
  specs_.clear();
  sent_ = bytes_ = 0;
  uint32_t lane = 0;
  ShardAssignment place;
  TRY(shards_->BeginDeparture(order.shard, &lane, &place));
  // On every return below: unless it was given away, the shard is served here again.
  const auto end = std::shared_ptr<void>(nullptr, [&](void*) { shards_->EndDeparture(lane); });
  if (place.owner == order.to) return Status::Ok();
  TRY_ASSIGN(rows_, dialer_.Dial(HelloTo(order.to.server, order.to.lane), kDialTimeout));
  TRY_ASSIGN(first_, dialer_.Dial(HelloTo(order.to.server, 0), kDialTimeout));
  std::string arriving = BeginEntry(EntryKind::kArriving, -1, 0);
  ByteWriter writer(&arriving);
  writer.Put(order.shard);
  writer.Put(place.epoch + 1);
  TRY(SendEntries({arriving}));
  TRY(CopyAll(lane, order.shard));
  TRY(FaultPoint("ps.move.copied"));
  TRY(CatchUp(lane));
  TRY(Freeze(lane));
  const TimePoint frozen = RealClock::Get()->Now();
  TRY(rows_->Await(sent_, frozen + kLastRowsTimeout));
  TRY(FaultPoint("ps.move.arrived"));
  TRY(CommitMove(lane, order, place.epoch + 1));
  report->bytes = bytes_;
  report->stalled_us =
      static_cast<uint64_t>((RealClock::Get()->Now() - frozen) / std::chrono::microseconds(1));
  shards_->Publish();
  return Status::Ok();
}

Status ShardMover::SendEntries(const std::vector<std::string>& entries) {
  for (const std::string& entry : entries) {
    if (stopped()) return Unavailable("the server stops");
    sent_ = rows_->Send(FrameType::kReplicate, entry);
    bytes_ += entry.size();
    if (sent_ <= kUnderWay) continue;
    TRY(rows_->Await(sent_ - kUnderWay, RealClock::Get()->Now() + kRowsTimeout));
  }
  return Status::Ok();
}

// Clients make tables on all servers, one after the other: this one may have it first.
Status ShardMover::SendSpecs(uint32_t lane) {
  for (const std::string& spec : shards_->SpecsOf(lane, &specs_)) {
    sent_ = rows_->Send(FrameType::kCreateTable, spec);
  }
  return Status::Ok();
}

Status ShardMover::CopyAll(uint32_t lane, uint32_t shard) {
  TRY(SendSpecs(lane));
  RowCursor cursor;
  cursor.shard = shard;
  for (;;) {
    const std::string entry = shards_->CopyShard(lane, &cursor);
    if (entry.empty()) break;
    TRY(SendEntries({entry}));
  }
  return rows_->Await(sent_, RealClock::Get()->Now() + kRowsTimeout);
}

// Rows that were pushed to since they were copied, and since that was done, and so on.
Status ShardMover::CatchUp(uint32_t lane) {
  bool few = false;
  for (int round = 0; round < kRounds && !few; ++round) {
    const std::vector<std::string> entries = shards_->CopyDirty(lane, false, &few);
    TRY(SendSpecs(lane));
    TRY(SendEntries(entries));
    TRY(rows_->Await(sent_, RealClock::Get()->Now() + kRowsTimeout));
  }
  return Status::Ok();
}

// A snapshot that is open holds the shard, so it stays until the snapshot is written.
Status ShardMover::Freeze(uint32_t lane) {
  const TimePoint deadline = RealClock::Get()->Now() + kCutTimeout;
  for (;;) {
    bool frozen = false;
    const std::vector<std::string> entries = shards_->CopyDirty(lane, true, &frozen);
    TRY(SendSpecs(lane));
    TRY(SendEntries(entries));
    if (frozen) return Status::Ok();
    if (RealClock::Get()->Now() >= deadline) {
      return Unavailable("a checkpoint is being written for too long: try again");
    }
    if (!Pause(kRetryEvery)) return Unavailable("the server stops");
  }
}

// Here it is decided: before, the shard is ours whatever becomes of the other one; afterwards it
// never is again, and only the other one has to hear of it.
Status ShardMover::CommitMove(uint32_t lane, const MoveRequest& order, uint32_t epoch) {
  TRY_ASSIGN(const ShardMap decided, shards_->Depart(lane, order.shard, {order.to, epoch}));
  while (!shards_->DepartureConfirmed(lane)) {
    if (shards_->context().stopped || !Pause(kLook)) return Unavailable("the server stops");
  }
  return NotifyNewOwner(order.to.server, decided);
}

Status ShardMover::NotifyNewOwner(int server, const ShardMap& decided) {
  const std::string body = EncodeShards(decided);
  for (;;) {
    if (first_ != nullptr) {
      const auto told =
          first_->SendRequest(FrameType::kShards, body, RealClock::Get()->Now() + kLastRowsTimeout);
      if (told.ok()) return Status::Ok();
      LogWarning("server {}: cannot tell server {} of its shard: {}",
                 shards_->context().options.index, server, told.status().message());
    }
    if (shards_->context().stopped || !Pause(kRetryEvery)) return Unavailable("the server stops");
    auto again = dialer_.Dial(HelloTo(server, 0), kLastRowsTimeout);
    first_ = again.ok() ? std::move(again).value() : nullptr;
  }
}

void ShardMover::NotifyAll() {
  std::set<int> left = OtherServers(shards_->context().options);
  while (!left.empty() && !stopped()) {
    SendShardMap(&dialer_, shards_->Map(), kDialTimeout, &left);
    if (!left.empty() && !Pause(kRetryEvery)) return;
  }
}

}  // namespace shoal::ps
