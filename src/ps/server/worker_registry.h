// The workers that count, their clocks, and the waits at clocks and barriers.
//
// Pure bookkeeping of the leader, used by WorkerService under lane 0's lock. A worker counts from
// the start if its index is below the expected number, else from when it joins; it counts until it
// is removed.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "ps/transport/server_connection.h"

namespace shoal::ps {

// Not thread-safe. An Answer is kept until it is called or its worker is removed or joins again.
class WorkerRegistry {
 public:
  explicit WorkerRegistry(int expected) : expected_(expected) {}

  // A newcomer starts at the slowest worker's clock (but not below `clock`); one that reconnects
  // with the same session goes on where it was.
  void Join(int worker, uint64_t session, uint64_t clock);
  // The worker has left or is dead: it counts no more until it joins again, and its waits are
  // dropped.
  void Remove(int worker);
  bool IsCounted(int worker) const;
  // The smallest clock of the workers that count; UINT64_MAX if none does.
  uint64_t MinClock() const;

  // The worker has finished its n-th round. Answers when n is at most `staleness` ahead of
  // MinClock; at once without a staleness (ASP).
  void ReportClock(int worker, uint64_t n, std::optional<uint32_t> staleness, Answer answer);
  // Answers when all workers that count have entered. `id` tells a repeated request of the worker's
  // present session from a new one.
  void EnterBarrier(int worker, const std::string& name, uint64_t id, Answer answer);

  // The worker no longer waits at the barrier that it entered as `id`: it has not entered. True: it
  // was let through before that.
  bool LeaveBarrier(int worker, const std::string& name, uint64_t id);

  // The workers that such a wait would wait for, ascending.
  std::vector<int> WorkersBehind(uint64_t n, uint32_t staleness) const;
  std::vector<int> WorkersNotEntered(const std::string& name) const;
  // Everything except the answers that are owed: after a takeover the workers ask again.
  void Save(ByteWriter* writer) const;
  // Into an empty registry. OutOfRange: not what Save wrote.
  Status Load(ByteReader* reader);

 private:
  static constexpr size_t kRememberedBarriers = 64;
  struct Worker {
    bool joined = false;
    bool gone = false;
    uint64_t session = 0;
    uint64_t clock = 0;
    std::deque<uint64_t> passed;  // ids of the last barriers it was let through
  };
  struct ClockWait {
    int worker;
    uint64_t n;
    uint32_t staleness;
    Answer answer;
  };
  struct BarrierWait {
    uint64_t id;
    Answer answer;
  };

  void Release();
  void ReleaseBarriers();
  std::vector<int> Counting() const;
  bool AllEntered(const std::map<int, BarrierWait>& entered) const;
  void ForgetWaits(int worker);

  const int expected_;
  std::map<int, Worker> workers_;
  std::vector<ClockWait> clock_waits_;
  std::map<std::string, std::map<int, BarrierWait>> barriers_;
};

}  // namespace shoal::ps
