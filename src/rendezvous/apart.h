// The part of a coordinator whose directory its controller does not see: waits for the controller
// before the job begins, gets the journal of an earlier coordinator from it, and knows how far the
// controller has kept what was decided since. Used by coordinator.cc; no rules of the job are here.
//
// docs/formats/rendezvous.md, "Apart"; docs/adr/0096.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status.h"
#include "rendezvous/peer.h"

namespace shoal::rendezvous {

// Who keeps the journal and says nothing for so long is not waited for any more.
inline constexpr Duration kKeeperPatience = std::chrono::seconds(5);

// Belongs to the loop's thread.
class Apart {
 public:
  explicit Apart(std::filesystem::path journal) : journal_(std::move(journal)) {}

  // ---- Before the job begins ----

  // Whether nobody need be asked for the journal: it is here, or this is the job's first life, in
  // which there is none.
  bool MayBegin(bool first_life);
  // Somebody has proved the token; he is heard when the job has begun. Of a controller `hello`
  // says how much of the journal it keeps: none, and the job may begin (true); else it is asked to
  // send it.
  Result<bool> Hello(Peer* peer, uint64_t member, const json::object& hello);
  // And what he says: true if that was the end of the journal, which is in its place then.
  Result<bool> Word(Peer* peer, uint64_t member, const std::string& type,
                    const json::object& message);
  // Bytes of it. InvalidArgument, DataLoss.
  Status Took(Peer* peer, std::string_view frame);
  // All that was said, in order; `type` is empty for a hello.
  struct Said {
    uint64_t member;
    std::string type;
    json::object message;
  };
  std::vector<Said> TakeEarly() { return std::exchange(early_, {}); }

  // ---- Later ----

  // The journal is so long with this fact.
  void Recorded(int64_t seq, int64_t bytes) { lengths_.emplace_back(bytes, seq); }
  // `peer` keeps so many bytes of the journal. Unavailable if this was wrongly said to be the first
  // life: the first who comes keeps what an earlier one has decided, and the next one asks for it.
  Status Keeps(Peer* peer, int64_t bytes, TimePoint now);
  // It has said something.
  void Alive(Peer* peer, TimePoint now);
  void Remove(Peer* peer);
  // The last fact that a controller keeps; nothing: nobody keeps anything.
  std::optional<int64_t> kept() const;
  // Who is behind and has said nothing for kKeeperPatience: to be closed.
  std::vector<Peer*> Stuck(TimePoint now) const;

 private:
  struct Keeping {
    int64_t bytes = 0;
    TimePoint heard;
  };
  Result<bool> Whole(const json::object& message);

  const std::filesystem::path journal_;
  bool first_life_ = false;  // and nobody has come yet
  std::vector<Said> early_;
  Peer* sender_ = nullptr;  // who is sending the journal
  UniqueFd coming_;
  int64_t come_ = 0;
  std::vector<std::pair<int64_t, int64_t>> lengths_;  // bytes, seq; ascending
  std::map<Peer*, Keeping> keepers_;
};

}  // namespace shoal::rendezvous
