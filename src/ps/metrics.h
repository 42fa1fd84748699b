// Metrics of a server: for its log, for `Server::metrics`, and for exporters.
//
// Filled by ServerCore. Plain data; counts are since the server started, sizes are present ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ps/types.h"

namespace shoal::ps {

struct TableMetrics {
  std::string name;
  uint64_t rows = 0;   // that this server has memory for
  uint64_t bytes = 0;  // of their values and optimizer state, without padding
};

struct CheckpointMetrics {
  int64_t last = -1;  // the newest that this server has written, or was restored from; -1: none
  double age_seconds = -1;  // since then; -1: it has written none
  double seconds = 0;       // that its file took, from the decision to write to the rename
  uint64_t bytes = 0;       // of that file
  bool continues = false;   // it holds only what changed
  uint64_t written = 0;     // files
  uint64_t failed = 0;      // that could not be written, or whose checkpoint was given up first
  bool under_way = false;   // server 0: one is being taken
  size_t waiting = 0;       // server 0: requests for the next one
};

struct ServerMetrics {
  int server = 0;
  Counters counters;
  std::vector<HotKey> hot_keys;  // most frequent first
  std::vector<TableMetrics> tables;
  uint64_t memory_bytes = 0;  // mapped for rows
  uint64_t blobs = 0;
  uint64_t blob_bytes = 0;
  uint64_t connections = 0;
  uint64_t queued_bytes = 0;         // answers that clients have not taken yet
  uint64_t longest_queue_bytes = 0;  // of one connection; bounded by ServerOptions::max_queue_bytes
                                     // and one answer
  CheckpointMetrics checkpoint;
};

// Adds up what one process says of several servers whose rows it serves: a server's own comes
// first.
void AddMetrics(const ServerMetrics& other, ServerMetrics* all);
void AddCounters(const Counters& other, Counters* all);
// The most frequent n of all; each count knows its share of its own server's rows.
std::vector<HotKey> MergeHotKeys(const std::vector<std::vector<HotKey>>& by_server, size_t n);

// One line for people: "server 0: 12 tables of 4000 rows, …".
std::string Describe(const ServerMetrics& metrics);

}  // namespace shoal::ps
