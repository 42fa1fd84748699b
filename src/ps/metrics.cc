#include "ps/metrics.h"

#include <fmt/format.h>

namespace shoal::ps {

std::string Describe(const ServerMetrics& metrics) {
  uint64_t rows = 0;
  for (const TableMetrics& table : metrics.tables) rows += table.rows;
  std::string text = fmt::format(
      "server {}: {} rows in {} tables, {} MiB; {} rows pushed, {} pulled by {} connections, {} "
      "KiB "
      "of answers unread",
      metrics.server, rows, metrics.tables.size(), metrics.memory_bytes >> 20,
      metrics.counters.rows_pushed, metrics.counters.rows_pulled, metrics.connections,
      metrics.queued_bytes >> 10);
  if (!metrics.hot_keys.empty()) {
    const HotKey& hot = metrics.hot_keys.front();
    text += fmt::format("; hottest: '{}' key {}, {:.1f} % of rows", hot.table, hot.key,
                        100 * hot.share);
  }
  const CheckpointMetrics& checkpoint = metrics.checkpoint;
  if (checkpoint.age_seconds >= 0) {
    text += fmt::format("; checkpoint {} of {:.0f} s ago, {} KiB{} in {:.2f} s", checkpoint.last,
                        checkpoint.age_seconds, checkpoint.bytes >> 10,
                        checkpoint.continues ? " of changes" : "", checkpoint.seconds);
  }
  if (checkpoint.failed > 0) text += fmt::format("; {} checkpoints failed", checkpoint.failed);
  return text;
}

}  // namespace shoal::ps
