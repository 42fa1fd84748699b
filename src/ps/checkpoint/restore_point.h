// The checkpoint that the servers of a job restore: server 0 chooses it and the others follow, so
// that no two servers continue from different ones.
//
// Asked by a server that starts (checkpoint_restore.cc), answered by the others (server_core.cc).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "ps/lane/server_options.h"
#include "ps/shard_map.h"

namespace shoal::ps {

// A server's answer to kRestorePoint.
struct RestorePoint {
  int64_t restored = -1;   // the checkpoint that it was restored from; -1: it started empty
  int64_t committed = -1;  // the last that has been committed since; -1: none
  int64_t under_way = -1;  // the one that is being taken: it is committed at any moment; -1: none
  bool in_use = false;     // it has tables
  bool operator==(const RestorePoint&) const = default;
};

std::string EncodeRestorePoint(const RestorePoint& point);
Result<RestorePoint> DecodeRestorePoint(std::string_view bytes);

// The checkpoint that another server restores; -1: none. `newest`: the newest that it finds whole
// itself, or -1, from before it asked. While nothing has been committed since server 0 started, the
// servers start together and all take the same one. Afterwards a server that starts comes back
// alone, and takes the newest. FailedPrecondition: what it finds cannot be what server 0 found.
Result<int64_t> FollowRestorePoint(const RestorePoint& leader, int64_t newest);

// Asks server 0, for as long as it is not there yet. Needs options.members.
Result<RestorePoint> AskRestorePoint(const ServerOptions& options, Duration patience);

// Whether a server that has started lost rows: it is another incarnation of one that owned some,
// has restored none, and another server, which answers at once, has tables. Without Members or with
// copies it is not known here, and false.
bool CameBackEmpty(const ServerOptions& options, const ShardMap& map, int64_t restored);

}  // namespace shoal::ps
