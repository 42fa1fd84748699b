// What a server says of itself: counters, hot keys, memory, queues, checkpoints (metrics.h).
#include <algorithm>
#include <map>

#include "ps/metrics.h"
#include "ps/server_core.h"

namespace shoal::ps {

Counters ServerCore::counters() {
  Counters sum;
  for (auto& lane : lanes_) {
    Lane::Guard guard(*lane);
    const Counters& part = lane->counters;
    sum.rows_pushed += part.rows_pushed;
    sum.rows_pulled += part.rows_pulled;
    sum.bytes_pushed += part.bytes_pushed;
    sum.bytes_pulled += part.bytes_pulled;
    sum.requests += part.requests;
    sum.duplicates += part.duplicates;
  }
  sum.refused_connections = refused_connections;
  sum.wire_bytes_in = wire_bytes_in;
  sum.wire_bytes_out = wire_bytes_out;
  return sum;
}

ServerMetrics ServerCore::metrics() {
  ServerMetrics all;
  all.server = options_.index;
  all.counters = counters();
  all.hot_keys = hot_keys(16);
  std::map<std::string, TableMetrics> tables;
  for (auto& lane : lanes_) {
    Lane::Guard guard(*lane);
    all.memory_bytes += lane->memory_bytes();
    for (const auto& [id, table] : lane->tables()) {
      TableMetrics& of = tables[table->spec().name];
      of.name = table->spec().name;
      of.rows += table->stored_rows();
      of.bytes += table->stored_rows() * table->saved_floats() * sizeof(float);
    }
    for (const auto& [id, session] : lane->sessions()) {
      const auto peer = session.peer.lock();
      if (peer == nullptr) continue;
      ++all.connections;
      all.queued_bytes += peer->queued();
      all.longest_queue_bytes = std::max<uint64_t>(all.longest_queue_bytes, peer->queued());
    }
  }
  for (auto& [name, table] : tables) all.tables.push_back(std::move(table));
  Lane::Guard guard(*lanes_[0]);
  all.blobs = blobs_.count();
  all.blob_bytes = blobs_.bytes();
  all.checkpoint = checkpointing_;
  all.checkpoint.under_way = checkpoint_ >= 0;
  if (checkpoint_written_ != TimePoint{}) {
    const Duration age = options_.clock->Now() - checkpoint_written_;
    all.checkpoint.age_seconds = std::chrono::duration<double>(age).count();
  }
  return all;
}

// Lanes share no keys, so their tops need no adding up.
std::vector<HotKey> ServerCore::hot_keys(size_t n) {
  std::vector<HotKey> all;
  uint64_t samples = 0;
  for (auto& lane : lanes_) {
    Lane::Guard guard(*lane);
    samples += lane->hot_keys.samples();
    for (const HotKeys::Entry& entry : lane->hot_keys.Top()) {
      const Table* table = lane->FindTable(entry.table);
      if (table == nullptr) continue;
      all.push_back({table->spec().name, entry.key, entry.count - entry.error, 0});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const HotKey& a, const HotKey& b) { return a.rows > b.rows; });
  if (all.size() > n) all.resize(n);
  for (HotKey& key : all) {
    key.share = static_cast<double>(key.rows) / static_cast<double>(samples);
    key.rows *= HotKeys::kEvery;
  }
  return all;
}

}  // namespace shoal::ps
