// A server's metrics: counters, hot keys, memory, queues, checkpoints (metrics.h).
#include <algorithm>
#include <map>

#include "ps/metrics.h"
#include "ps/server/server_core.h"

namespace shoal::ps {

void AddCounters(const Counters& other, Counters* all) {
  all->rows_pushed += other.rows_pushed;
  all->rows_pulled += other.rows_pulled;
  all->bytes_pushed += other.bytes_pushed;
  all->bytes_pulled += other.bytes_pulled;
  all->wire_bytes_in += other.wire_bytes_in;
  all->wire_bytes_out += other.wire_bytes_out;
  all->requests += other.requests;
  all->duplicates += other.duplicates;
  all->refused_connections += other.refused_connections;
}

void AddMetrics(const ServerMetrics& other, ServerMetrics* all) {
  AddCounters(other.counters, &all->counters);
  for (const TableMetrics& table : other.tables) {
    const auto at = std::find_if(all->tables.begin(), all->tables.end(),
                                 [&](const TableMetrics& of) { return of.name == table.name; });
    if (at == all->tables.end()) {
      all->tables.push_back(table);
    } else {
      at->rows += table.rows;
      at->bytes += table.bytes;
    }
  }
  all->memory_bytes += other.memory_bytes;
  all->blobs += other.blobs;
  all->blob_bytes += other.blob_bytes;
  all->connections += other.connections;
  all->queued_bytes += other.queued_bytes;
  all->longest_queue_bytes = std::max(all->longest_queue_bytes, other.longest_queue_bytes);
  if (all->checkpoint.last < 0 || other.checkpoint.under_way) all->checkpoint = other.checkpoint;
}

std::vector<HotKey> MergeHotKeys(const std::vector<std::vector<HotKey>>& by_server, size_t n) {
  std::vector<HotKey> all;
  double rows = 0;
  for (const std::vector<HotKey>& keys : by_server) {
    all.insert(all.end(), keys.begin(), keys.end());
    if (!keys.empty() && keys[0].share > 0)
      rows += static_cast<double>(keys[0].rows) / keys[0].share;
  }
  std::sort(all.begin(), all.end(),
            [](const HotKey& a, const HotKey& b) { return a.rows > b.rows; });
  if (all.size() > n) all.resize(n);
  for (HotKey& key : all) key.share = rows > 0 ? static_cast<double>(key.rows) / rows : 0;
  return all;
}

Counters ServerCore::counters() {
  Counters sum;
  for (auto& lane : context_.lanes) {
    Lane::Guard guard(*lane);
    AddCounters(lane->counters, &sum);
  }
  sum.refused_connections = refused_connections;
  sum.wire_bytes_in = wire_bytes_in;
  sum.wire_bytes_out = wire_bytes_out;
  return sum;
}

ServerMetrics ServerCore::metrics() {
  ServerMetrics all;
  all.server = options().index;
  all.counters = counters();
  all.hot_keys = hot_keys(16);
  std::map<std::string, TableMetrics> tables;
  for (auto& lane : context_.lanes) {
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
  Lane::Guard guard(context_.first_lane());
  all.blobs = blobs_.store().count();
  all.blob_bytes = blobs_.store().bytes();
  all.checkpoint = checkpoints_.metrics();
  return all;
}

// Lanes share no keys, so their tops need no adding up.
std::vector<HotKey> ServerCore::hot_keys(size_t n) {
  std::vector<HotKey> all;
  uint64_t samples = 0;
  for (auto& lane : context_.lanes) {
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
    key.rows *= HotKeys::kSampleInterval;
  }
  return all;
}

}  // namespace shoal::ps
