// Who counts: the live workers, their clocks, and who waits for whom at clocks and barriers.
//
// Pure bookkeeping on server 0, under its first lane's lock (server_core.cc). A worker counts from
// the start if it is one of the expected ones, else from when it joined, until it is gone.
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

class WorkerRegistry {
 public:
  explicit WorkerRegistry(int expected) : expected_(expected) {}

  // A newcomer starts at the slowest worker's clock (but not below `clock`); one that reconnects
  // with the same session goes on where it was.
  void Join(int worker, uint64_t session, uint64_t clock);
  // Left or dead: counts no more until it joins again. Its waits are forgotten.
  void Remove(int worker);
  bool IsCounted(int worker) const;
  // Smallest clock of those who count; UINT64_MAX if nobody does.
  uint64_t MinClock() const;

  // The worker has finished its n-th round. Answers when n is at most `staleness` ahead of
  // MinClock; at once without a staleness (ASP).
  void ReportClock(int worker, uint64_t n, std::optional<uint32_t> staleness, Answer answer);
  // Answers when all who count have entered. `id` tells a repeated request of the worker's present
  // session from a new one.
  void EnterBarrier(int worker, const std::string& name, uint64_t id, Answer answer);

  // The worker no longer waits at the barrier that it entered as `id`: it has not entered. True: it
  // was let through before that.
  bool LeaveBarrier(int worker, const std::string& name, uint64_t id);

  // Whom a wait of this kind waits for, ascending.
  std::vector<int> WorkersBehind(uint64_t n, uint32_t staleness) const;
  std::vector<int> WorkersNotEntered(const std::string& name) const;
  // All of it but the answers that are owed: whoever waits asks again.
  void Save(ByteWriter* writer) const;
  // Into an empty workers. OutOfRange: not what Save wrote.
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
