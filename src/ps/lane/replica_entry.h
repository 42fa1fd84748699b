// The entries of a replication log: one for everything that changes a lane, and, for a new backup,
// the present state of the lane (docs/formats/ps-wire.md, "Replication").
//
// Written under the primary's lane lock, read under the backup's. An entry names the client session
// that caused it, so that the backup knows what each client has sent.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ps/storage/row_request.h"
#include "ps/wire/frame.h"

namespace shoal::ps {

enum class EntryKind : uint32_t {
  kRows = 1,       // a frame of a push or call, with plain keys
  kJoin = 2,       // u64 first_seq, u64 clock
  kControl = 4,    // u64 id, u64 argument, u32 type, body: a control frame that changes something
  kLost = 5,       // the session's connection is gone
  kDead = 6,       // client: the worker counts no more
  kSession = 7,    // u64 last_seq, u8 left, u8 dead, u8 replaced
  kProgress = 8,   // client, bytes
  kServer = 9,     // u64 instance, i64 restored, i64 last checkpoint, worker registry
  kBlob = 10,      // string name, u64 upload, u64 total, u64 offset, string bytes
  kCopyRows = 11,  // u32 table, u32 floats, u32 rows, u32 0, keys, values
  kPaired = 12,    // the lane is complete
  kNothing = 13,   // the primary lives
  kMoved = 14,     // u64 seq: the request was refused, its rows had moved
  kShards = 15,    // a map of shards
  kArriving = 16,  // u32 shard, u32 epoch: rows of a shard that is not served here yet
  kEmptied = 17,   // the primary has left and owns nothing: the backup does not take over
};

struct Entry {
  EntryKind kind = EntryKind::kNothing;
  int32_t client = -1;
  uint64_t session = 0;
  std::string_view content;
};

// An entry without its content, for the caller to append it.
std::string BeginEntry(EntryKind kind, int client, uint64_t session);
// InvalidArgument or OutOfRange: not an entry.
Status ReadEntry(std::string_view bytes, Entry* entry);

// A row operation that changes rows, as the backup shall repeat it: without an answer, with plain
// keys. ResourceExhausted if it would not fit a frame.
Result<std::string> RowsEntry(int client, uint64_t session, FrameHeader head,
                              const RowSource& source, const RowRequest& request);

// kCopyRows: rows of a table as they are, with the optimizer's state, `floats` of each.
std::string CopyRowsEntry(uint32_t table, size_t floats, const std::vector<Key>& keys,
                          const std::vector<float>& rows);

}  // namespace shoal::ps
