// The columns of tables whose records name their fields.
#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "data/examples/csv.h"
#include "data/examples/examples.h"
#include "data/examples/record_fields.h"
#include "data/formats/record_reader.h"
#include "data/parquet/parquet_rows.h"

namespace shoal::data {
namespace {

constexpr uint64_t kHeadRecords = 1000;
constexpr uint64_t kHeadBytes = 4 << 20;

Result<ColumnFinder> FindInRecords(ExampleFormat format, const Corpus& corpus,
                                   const std::string& categorical) {
  const bool json = format == ExampleFormat::kJsonLines;
  const auto fields = json ? MakeJsonFields() : MakeTfExampleFields();
  // Whether malformed records are tolerated is decided where they are read.
  RecordReader reader(corpus, json ? RecordFormat::kJsonLines : RecordFormat::kTfRecord, {1});
  ColumnFinder finder(categorical);
  Record record;
  for (uint64_t i = 0; i < kHeadRecords && reader.bytes_read() < kHeadBytes; ++i) {
    TRY_ASSIGN(const bool more, reader.Next(&record));
    if (!more) break;
    (void)fields->Read(record.bytes, &finder);
  }
  if (!finder.names().empty()) return finder;
  if (reader.first_bad().empty()) return InvalidArgument("the first records have no field");
  return InvalidArgument(fmt::format("none of the first records has a field, {} are malformed: {}",
                                     reader.bad(), reader.first_bad().front().text()));
}

Result<ColumnFinder> FindInParquet(const Corpus& corpus, const std::string& categorical) {
  ColumnFinder finder(categorical);
  TRY_ASSIGN(const auto rows,
             ParquetRows::Open(corpus.files().front(), [](std::string_view) { return true; }));
  for (const ParquetColumn& column : rows->footer().columns) {
    if (column.left_out) finder.LeftOut(column.name);
  }
  // Lists' lengths are in no footer. Without one the columns are known at once.
  for (const ParquetColumn& column : rows->footer().columns) {
    if (!column.left_out) finder.Value(column.name, {});
  }
  const bool lists = std::ranges::any_of(rows->footer().columns, [](const ParquetColumn& column) {
    return !column.left_out && column.repetitions > 0;
  });
  uint64_t left = lists ? kHeadRecords : 0;
  for (size_t group = 0; left > 0 && group < rows->footer().groups.size(); ++group) {
    TRY(rows->Enter(group));
    for (bool more = true; left > 0 && more; --left) {
      TRY_ASSIGN(more, rows->Next(&finder));
    }
  }
  if (!finder.names().empty()) return finder;
  return InvalidArgument("it has no column");
}

Status NeedsLabel(const CsvOptions& options, const std::vector<std::string>& names) {
  if (!options.label.empty() || options.trained || !options.label_needed) return Status::Ok();
  return InvalidArgument(
      fmt::format("label: missing; the features of a tfrecord have no order, so name one of {}{}",
                  fmt::join(names.begin(),
                            names.begin() + std::min<std::ptrdiff_t>(12, std::ssize(names)), ", "),
                  names.size() > 12 ? ", …" : ""));
}

}  // namespace

Result<std::shared_ptr<const CsvColumns>> FindColumns(ExampleFormat format, const Corpus& corpus,
                                                      const CsvOptions& options) {
  if (format == ExampleFormat::kCsv || format == ExampleFormat::kTsv) {
    CsvOptions own = options;
    if (format == ExampleFormat::kTsv) own.delimiter = '\t';
    return CsvColumns::Make(corpus, own);
  }
  const auto with_file = [&](const Status& status) {
    return InvalidArgument(corpus.files().front().path.string() + ": " + status.message());
  };
  const auto found = format == ExampleFormat::kParquet
                         ? FindInParquet(corpus, options.categorical)
                         : FindInRecords(format, corpus, options.categorical);
  if (!found.ok()) return with_file(found.status());
  const std::vector<std::string> names = found->names();
  if (format == ExampleFormat::kTfRecord) {
    if (const Status status = NeedsLabel(options, names); !status.ok()) return with_file(status);
  }
  if (!found->left_out().empty()) {
    LogWarning("{}: lists of lists or objects are left out: {}",
               corpus.files().front().path.string(), fmt::join(found->left_out(), ", "));
  }
  auto columns = CsvColumns::FromNames(names, options);
  if (!columns.ok()) return with_file(columns.status());
  return columns;
}

}  // namespace shoal::data
