// A client's knowledge of shards: their owners, and the channel to each one's owner.
//
// Owned by ClientCore. Learn, Known, NoteTable and the look-ups of servers are thread-safe. Routes
// change only while the gate's routes are closed (SetRoutes, by the redirector's thread), so
// ChannelOf needs no lock.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "ps/shard_map.h"
#include "ps/types.h"

namespace shoal::ps {

class ShardRouter {
 public:
  // The initial owners: `lanes[s]`: lanes of server s. Keeps moves that are known already. Before
  // the first request.
  void Begin(uint32_t shards, const std::vector<uint32_t>& lanes);
  // Merges a server's map; *news: set if it told something new.
  Status Learn(std::string_view bytes, bool* news);
  ShardMap Known();
  bool OwnsShards(int server);

  void NoteTable(uint32_t table, KeySpace space);
  // The server that owns a row, as far as known.
  int ServerOf(KeySpace space, Key key);

  // By shard: the index of the channel to its owner.
  const std::vector<size_t>& routes() const { return routes_; }
  void SetRoutes(std::vector<size_t> routes) { routes_ = std::move(routes); }
  size_t ChannelOf(KeySpace space, Key key) const {
    return routes_[partition_.ShardOf(space, key)];
  }
  size_t ChannelOfRow(uint32_t table, Key key);

 private:
  Partition partition_;         // constant after Begin
  std::vector<size_t> routes_;  // see above
  Mutex mu_;
  ShardMap known_ GUARDED_BY(mu_);
  std::map<uint32_t, KeySpace> key_spaces_ GUARDED_BY(mu_);  // by table
};

}  // namespace shoal::ps
