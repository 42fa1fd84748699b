// A client's part in moving shards: requests that came to a lane when some of their rows had left
// it are sent again where these are now, and nothing overtakes them (docs/design/partition.md).
//
// Owned by ClientCore. The receiving threads bring what was refused; a thread of its own, made when
// first needed, asks servers who owns what and sends. Meanwhile the gate keeps new requests back,
// for about a round trip.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <thread>

#include "ps/channel.h"

namespace shoal::ps {

class ClientCore;

class Rerouter {
 public:
  explicit Rerouter(ClientCore* core) : core_(core) {}
  ~Rerouter() { Stop(); }

  // The client is connected to all servers: what came meanwhile is looked at from now on.
  void Open();
  // Any thread; never blocks.
  void Take(Detour detour);
  // This server knows of moves that we may not know of.
  void News(int server);
  // Somebody of whom we need nothing may have left: see who is to be let go of.
  void Look();
  // True: something is on its way that was issued before a marker would go out. The marker is asked
  // for again when all of it has been sent.
  bool DefersMarker(int64_t checkpoint);
  // Waits until nothing is left. False: the deadline passed.
  bool Await(TimePoint deadline);
  // How many came so far.
  uint64_t taken();
  // What it still has fails. After the channels have failed, so that nothing holds its thread.
  void Stop();

 private:
  void Run();
  void Begin();
  void Turn();
  bool Learn(std::set<int> servers);
  Status Send(const Detour& detour);
  Status SendPart(const Detour& detour, FrameHeader head, size_t channel,
                  const std::vector<uint32_t>& rows);

  ClientCore* const core_;
  std::mutex mu_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::deque<Detour> detours_;  // guarded by mu_, with the rest
  std::set<int> ask_;
  size_t left_ = 0;  // came, and are not sent yet
  uint64_t taken_ = 0;
  int64_t marker_ = -1;  // that waits
  bool look_ = false;
  bool ready_ = false;
  bool stop_ = false;
  std::thread thread_;
  Duration backoff_{};  // the thread's
};

}  // namespace shoal::ps
