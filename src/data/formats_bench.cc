// Measures the readers of records on the files bench.FORMAT of the folder SHOAL_BENCH_DATA, which
// bench/formats.py makes: the readers of the trainers, and rows as programs get them. Rates refer
// to the thread's own CPU time.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "data/datasets/column_batch.h"
#include "data/datasets/row_reader.h"
#include "data/examples/csv.h"
#include "data/examples/examples.h"
#include "data/formats/record_reader.h"
#include "data/gate/table_filter.h"

namespace shoal::data {
namespace {

constexpr int kHashBits = 22;

Result<Corpus> OpenFile(RecordFormat format) {
  const char* const folder = std::getenv("SHOAL_BENCH_DATA");
  if (folder == nullptr) return NotFound("SHOAL_BENCH_DATA is not set");
  return Corpus::Open({std::string(folder) + "/bench." + std::string(NameOf(format))},
                      ObjectContext(), ContentOf(format));
}

void Report(benchmark::State& state, const Corpus& corpus, uint64_t rows) {
  state.SetBytesProcessed(static_cast<int64_t>(corpus.stored_bytes()) * state.iterations());
  state.SetItemsProcessed(static_cast<int64_t>(rows) * state.iterations());
}

// As the trainers read: to sparse rows.
void Examples(benchmark::State& state, RecordFormat records, ExampleFormat format) {
  const auto corpus = OpenFile(records);
  if (!corpus.ok()) return state.SkipWithError(corpus.status().message().c_str());
  ExampleOptions options;
  options.format = format;
  options.binary_labels = false;
  if (IsTable(format)) {
    options.hash_bits = kHashBits;
    const auto columns = FindColumns(format, *corpus, {.label = "label"});
    if (!columns.ok()) return state.SkipWithError(columns.status().message().c_str());
    options.csv = *columns;
  }
  uint64_t rows = 0;
  for (auto _ : state) {
    rows = 0;
    ExampleReader reader(*corpus, corpus->MakeShard(0, 1).value(), options);
    ExampleSet set;
    for (bool more = true; more;) {
      set.Clear();
      const auto read = reader.Read(&set);
      if (!read.ok()) return state.SkipWithError(read.status().message().c_str());
      more = *read;
      rows += set.size();
    }
  }
  Report(state, *corpus, rows);
}

// As programs get them: columns of numbers and texts.
void Batches(benchmark::State& state, RecordFormat format, size_t most) {
  const auto corpus = OpenFile(format);
  if (!corpus.ok()) return state.SkipWithError(corpus.status().message().c_str());
  const auto all = FindBatchColumns(*corpus, format, {}, {});
  if (!all.ok()) return state.SkipWithError(all.status().message().c_str());
  std::vector<BatchColumn> columns = *all;
  if (columns.size() > most) columns.resize(most);
  RowOptions options;
  if (columns.size() < all->size())
    options.wants = [&](std::string_view name) {
      return std::ranges::find(columns, name, &BatchColumn::name) != columns.end();
    };
  uint64_t rows = 0;
  uint64_t bytes = 0;
  for (auto _ : state) {
    rows = 0;
    const auto reader = RowReader::Open(*corpus, format, options);
    ColumnBatch batch(columns);
    std::string frame;
    for (bool more = true; more;) {
      const auto read = (*reader)->NextRow(&batch);
      if (!read.ok()) return state.SkipWithError(read.status().message().c_str());
      more = *read;
      rows += more ? 1 : 0;
      constexpr size_t kRows = 1024;
      if (batch.rows() < kRows && more) continue;
      frame.clear();
      batch.TakeFrame("", &frame);
      benchmark::DoNotOptimize(frame);
    }
    bytes = (*reader)->records().bytes_read();
  }
  Report(state, *corpus, rows);
  state.counters["bytes_read"] = static_cast<double>(bytes);
}

// Records with their checksums, not decoded.
void Records(benchmark::State& state, RecordFormat format) {
  const auto corpus = OpenFile(format);
  if (!corpus.ok()) return state.SkipWithError(corpus.status().message().c_str());
  uint64_t rows = 0;
  for (auto _ : state) {
    RecordReader reader(*corpus, format, {.checked = false});
    Record record;
    for (rows = 0; reader.Next(&record).value(); ++rows) benchmark::DoNotOptimize(record);
  }
  Report(state, *corpus, rows);
}

// What a gate does when it starts: three of the columns, in the rows of a condition.
void Filter(benchmark::State& state, RecordFormat format) {
  const auto corpus = OpenFile(format);
  if (!corpus.ok()) return state.SkipWithError(corpus.status().message().c_str());
  RecordReader head(*corpus, format);
  const auto schema = InferSchema(&head, format, 1000);
  if (!schema.ok()) return state.SkipWithError(schema.status().message().c_str());
  GateTable table;
  table.format = format;
  table.filtered = true;
  for (const SchemaColumn& column : schema->columns)
    table.columns.push_back({column.name, column.type});
  table.given = {0, 1, 2};
  table.masks.resize(3);
  table.rows = "label = 1";
  const auto filter = TableFilter::Make(&table, "key");
  if (!filter.ok()) return state.SkipWithError(filter.status().message().c_str());
  uint64_t rows = 0;
  for (auto _ : state) {
    const auto counts = filter->Run(*corpus, [](std::string_view bytes) {
      benchmark::DoNotOptimize(bytes);
      return Status::Ok();
    });
    if (!counts.ok()) return state.SkipWithError(counts.status().message().c_str());
    rows = counts->read;
  }
  Report(state, *corpus, rows);
}

// Without the files there is nothing to measure, and `script/bench data` measures text alone.
const bool kRegistered = [] {
  if (std::getenv("SHOAL_BENCH_DATA") == nullptr) return false;
  benchmark::RegisterBenchmark("Examples/libsvm", &Examples, RecordFormat::kLibsvm,
                               ExampleFormat::kLibsvm);
  benchmark::RegisterBenchmark("Examples/csv", &Examples, RecordFormat::kCsv, ExampleFormat::kCsv);
  benchmark::RegisterBenchmark("Examples/jsonl", &Examples, RecordFormat::kJsonLines,
                               ExampleFormat::kJsonLines);
  benchmark::RegisterBenchmark("Examples/tfrecord", &Examples, RecordFormat::kTfRecord,
                               ExampleFormat::kTfRecord);
  benchmark::RegisterBenchmark("Examples/parquet", &Examples, RecordFormat::kParquet,
                               ExampleFormat::kParquet);
  benchmark::RegisterBenchmark("Batches/libsvm", &Batches, RecordFormat::kLibsvm, SIZE_MAX);
  benchmark::RegisterBenchmark("Batches/csv", &Batches, RecordFormat::kCsv, SIZE_MAX);
  benchmark::RegisterBenchmark("Batches/jsonl", &Batches, RecordFormat::kJsonLines, SIZE_MAX);
  benchmark::RegisterBenchmark("Batches/tfrecord", &Batches, RecordFormat::kTfRecord, SIZE_MAX);
  benchmark::RegisterBenchmark("Batches/parquet", &Batches, RecordFormat::kParquet, SIZE_MAX);
  benchmark::RegisterBenchmark("Batches/parquet_5_columns", &Batches, RecordFormat::kParquet, 5);
  benchmark::RegisterBenchmark("Records/tfrecord", &Records, RecordFormat::kTfRecord);
  benchmark::RegisterBenchmark("Filter/csv", &Filter, RecordFormat::kCsv);
  benchmark::RegisterBenchmark("Filter/jsonl", &Filter, RecordFormat::kJsonLines);
  benchmark::RegisterBenchmark("Filter/parquet", &Filter, RecordFormat::kParquet);
  return true;
}();

}  // namespace
}  // namespace shoal::data
