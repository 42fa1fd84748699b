#include "ps/wire/server_report.h"

#include <algorithm>

#include "base/bytes.h"
#include "ps/metrics.h"
#include "ps/wire/spec_codec.h"

namespace shoal::ps {
namespace {

constexpr uint32_t kMaxTables = 1u << 16;
constexpr uint32_t kMaxHotKeys = 1u << 16;

void PutCounters(const Counters& counters, ByteWriter* out) {
  out->Put(counters.rows_pushed);
  out->Put(counters.rows_pulled);
  out->Put(counters.bytes_pushed);
  out->Put(counters.bytes_pulled);
  out->Put(counters.requests);
  out->Put(counters.duplicates);
}

Status GetCounters(ByteReader* in, Counters* counters) {
  TRY(in->Get(&counters->rows_pushed));
  TRY(in->Get(&counters->rows_pulled));
  TRY(in->Get(&counters->bytes_pushed));
  TRY(in->Get(&counters->bytes_pulled));
  TRY(in->Get(&counters->requests));
  return in->Get(&counters->duplicates);
}

Status GetCount(ByteReader* in, uint32_t limit, const char* what, uint32_t* count) {
  TRY(in->Get(count));
  if (*count <= limit) return Status::Ok();
  return InvalidArgument("a server's report names " + std::to_string(*count) + " " + what +
                         ", expected at most " + std::to_string(limit));
}

Status GetTables(ByteReader* in, std::vector<TableReport>* tables) {
  uint32_t count = 0;
  TRY(GetCount(in, kMaxTables, "tables", &count));
  for (uint32_t i = 0; i < count; ++i) {
    TableReport table;
    TRY(DecodeSpec(in, &table.spec));
    TRY(in->Get(&table.stored_rows));
    TRY(in->Get(&table.bytes));
    TRY(in->Get(&table.rows_pushed));
    TRY(in->Get(&table.rows_pulled));
    tables->push_back(std::move(table));
  }
  return Status::Ok();
}

Status GetHotKeys(ByteReader* in, std::vector<HotKey>* keys) {
  uint32_t count = 0;
  TRY(GetCount(in, kMaxHotKeys, "keys", &count));
  for (uint32_t i = 0; i < count; ++i) {
    HotKey key;
    std::string_view table;
    TRY(in->GetString(&table, kMaxNameBytes));
    TRY(in->Get(&key.key));
    TRY(in->Get(&key.rows));
    key.table = table;
    keys->push_back(std::move(key));
  }
  return Status::Ok();
}

void SortHotKeys(ServerReport* report) {
  std::stable_sort(report->hot_keys.begin(), report->hot_keys.end(),
                   [](const HotKey& a, const HotKey& b) { return a.rows > b.rows; });
  for (HotKey& key : report->hot_keys) {
    if (report->hot_samples == 0) continue;
    key.share = static_cast<double>(key.rows) / static_cast<double>(report->hot_samples);
  }
}

}  // namespace

void EncodeReport(const ServerReport& report, std::string* out) {
  ByteWriter writer(out);
  writer.Put(static_cast<uint32_t>(report.tables.size()));
  for (const TableReport& table : report.tables) {
    EncodeSpec(table.spec, out);
    writer.Put(table.stored_rows);
    writer.Put(table.bytes);
    writer.Put(table.rows_pushed);
    writer.Put(table.rows_pulled);
  }
  writer.Put(report.hot_samples);
  writer.Put(static_cast<uint32_t>(report.hot_keys.size()));
  for (const HotKey& key : report.hot_keys) {
    writer.PutString(key.table);
    writer.Put(key.key);
    writer.Put(key.rows);
  }
  PutCounters(report.counters, &writer);
}

Status DecodeReport(std::string_view bytes, ServerReport* report) {
  *report = {};
  ByteReader reader(bytes);
  TRY(GetTables(&reader, &report->tables));
  TRY(reader.Get(&report->hot_samples));
  TRY(GetHotKeys(&reader, &report->hot_keys));
  TRY(GetCounters(&reader, &report->counters));
  if (reader.remaining() > 0) return InvalidArgument("a server's report has bytes behind its end");
  SortHotKeys(report);
  return Status::Ok();
}

void AddReport(const ServerReport& lane, ServerReport* server) {
  for (const TableReport& part : lane.tables) {
    const auto at = std::lower_bound(
        server->tables.begin(), server->tables.end(), part.spec.name,
        [](const TableReport& table, const std::string& name) { return table.spec.name < name; });
    if (at == server->tables.end() || at->spec.name != part.spec.name) {
      server->tables.insert(at, part);
      continue;
    }
    at->stored_rows += part.stored_rows;
    at->bytes += part.bytes;
    at->rows_pushed += part.rows_pushed;
    at->rows_pulled += part.rows_pulled;
  }
  server->hot_keys.insert(server->hot_keys.end(), lane.hot_keys.begin(), lane.hot_keys.end());
  server->hot_samples += lane.hot_samples;
  AddCounters(lane.counters, &server->counters);
  SortHotKeys(server);
}

}  // namespace shoal::ps
