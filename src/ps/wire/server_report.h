// A server's report for Admin::Describe: its tables, its counters, its most requested keys. Each
// lane sends one as the answer to kDescribe (docs/formats/ps-wire.md); the client adds a server's
// lanes up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ps/types.h"

namespace shoal::ps {

// One table on one lane, or on one server.
struct TableReport {
  TableSpec spec;
  uint64_t stored_rows = 0;  // that have memory: all of a dense table, of a sparse one those that
                             // have been pushed to
  uint64_t bytes = 0;        // of rows with their optimizer's state, and of the key index
  uint64_t rows_pushed = 0;
  uint64_t rows_pulled = 0;
};

struct ServerReport {
  int server = 0;                   // its index; 0 in a lane's own report
  std::vector<TableReport> tables;  // by name
  std::vector<HotKey> hot_keys;     // most asked for first
  uint64_t hot_samples = 0;         // that `HotKey::rows` were counted in, scaled to rows
  Counters counters;
};

void EncodeReport(const ServerReport& report, std::string* out);
// Reads and bounds; the bytes may be hostile. HotKey::share is computed, not read.
Status DecodeReport(std::string_view bytes, ServerReport* report);

// Adds one lane's report to that of its server.
void AddReport(const ServerReport& lane, ServerReport* server);

}  // namespace shoal::ps
