// Whether the state directory of a server is the one that all servers of its store share. The store
// holds the records of jobs only; their tokens, journals, logs and outputs are files, which a
// server that takes over must find. Used by server.cc for stores that several servers can share.
#pragma once

#include <filesystem>

#include "base/clock.h"
#include "base/status.h"
#include "controller/store/records.h"

namespace shoal::api {

// The first server of a store makes the file `state`/shared.id and stores its word and the
// directory's path in the store. FailedPrecondition, with the remedy, for a directory without this
// word, or with it at another path, since tasks are told paths. Blocks on the store and the disk.
Status CheckSharedState(controller::Records* records, const std::filesystem::path& state,
                        WallTime now);

}  // namespace shoal::api
