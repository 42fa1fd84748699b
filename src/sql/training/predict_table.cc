#include "sql/training/predict_table.h"

#include <fcntl.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "learn/sparse/predict.h"
#include "model/factor_model.h"
#include "model/save_model.h"
#include "sql/session/state.h"
#include "sql/tables/row_writer.h"
#include "sql/training/predicted_values.h"

namespace shoal::sql {
namespace {

using data::RecordFormat;
using learn::sparse::Predictions;

Status CheckNewColumns(const Table& table, const PredictTableOptions& options) {
  for (const data::SchemaColumn& column : table.columns) {
    if (column.name == options.prediction || column.name == options.probability)
      return AlreadyExists("the table has a column " + column.name +
                           " already; name another one with predictionCol or probabilityCol");
  }
  return Status::Ok();
}

class PredictedFile {
 public:
  PredictedFile(const Table& table, const PredictedValues& values,
                const PredictTableOptions& options)
      : table_(table), values_(values), options_(options) {
    const bool lines = table.format == RecordFormat::kCsv || table.format == RecordFormat::kTsv;
    format_ = lines ? table.format : RecordFormat::kJsonLines;
  }

  RecordFormat format() const { return format_; }

  // Writes the rows; `count` is the number of predictions, which must be that of the rows.
  Status WriteTo(int fd, uint64_t count) {
    TRY_ASSIGN(TableReader reader, TableReader::Open(table_));
    std::string buffer = HeaderLine(format_, ColumnNames());
    constexpr size_t kBuffer = size_t{1} << 20;
    uint64_t row = 0;
    for (;; ++row) {
      TRY_ASSIGN(const bool more, AppendNext(&reader, row, count, &buffer));
      if (!more) break;
      if (options_.stopped && options_.stopped()) return Cancelled("stopped while it predicted");
      if (buffer.size() < kBuffer) continue;
      TRY(WriteAll(fd, buffer));
      buffer.clear();
    }
    if (row != count)
      return Aborted("the table had " + std::to_string(count) +
                     " rows when it was predicted, now " + std::to_string(row) +
                     "; its files change");
    return WriteAll(fd, buffer);
  }

 private:
  std::vector<std::string> ColumnNames() const {
    std::vector<std::string> names;
    for (const data::SchemaColumn& column : table_.columns) names.push_back(column.name);
    names.push_back(options_.prediction);
    if (!values_.numbers()) names.push_back(options_.probability);
    return names;
  }

  Result<bool> AppendNext(TableReader* reader, uint64_t row, uint64_t count, std::string* out) {
    data::Record record;
    if (format_ != RecordFormat::kJsonLines) {
      TRY_ASSIGN(const bool more, reader->NextRecord(&record));
      if (!more) return false;
      if (row >= count) return true;  // counted only
      const char delimiter = format_ == RecordFormat::kCsv ? ',' : '\t';
      *out += record.bytes;
      TRY_ASSIGN(const std::string cell, CellOf(format_, ValueText(values_.PredictionOf(row))));
      *out += delimiter + cell;
      if (!values_.numbers()) *out += delimiter + ValueText(values_.ProbabilityOf(row));
      *out += '\n';
      return true;
    }
    TRY_ASSIGN(const bool more, reader->Next(&cells_));
    if (!more || row >= count) return more;
    json::object object;
    for (size_t i = 0; i < cells_.size(); ++i) {
      if (!cells_[i].is_null()) object[table_.columns[i].name] = cells_[i];
    }
    object[options_.prediction] = values_.PredictionOf(row);
    if (!values_.numbers()) object[options_.probability] = values_.ProbabilityOf(row);
    *out += ToText(object) + "\n";
    return true;
  }

  const Table& table_;
  const PredictedValues& values_;
  const PredictTableOptions& options_;
  RecordFormat format_;
  std::vector<json::value> cells_;
};

}  // namespace

Result<PredictedTable> PredictTable(const std::filesystem::path& model, const Table& table,
                                    const PredictTableOptions& options) {
  TRY(CheckNewColumns(table, options));
  TRY_ASSIGN(const json::object metadata, model::ReadModelMetadata(model));
  TRY(CheckTrainer(metadata, model, options.trainer));
  TRY_ASSIGN(const model::FactorModel weights, model::ReadFactorModel(model));
  learn::sparse::PredictOptions how;
  how.format = data::NameOf(table.format);
  how.threads = options.threads;
  TRY_ASSIGN(const Predictions predictions,
             learn::sparse::Predict(weights, metadata, table.sources, how));
  const PredictedValues values(predictions);
  PredictedFile file(table, values, options);
  TRY_ASSIGN(auto directory, SessionState::MakeDirectory());
  const std::string name = "predicted." + std::string(data::NameOf(file.format()));
  {
    TRY_ASSIGN(const UniqueFd fd, OpenFile(directory->path() / name, O_WRONLY | O_CREAT | O_EXCL));
    TRY(file.WriteTo(fd.get(), predictions.examples));
  }
  PredictedTable predicted;
  TRY_ASSIGN(predicted.table, OpenSessionFile(file.format(), std::move(directory), name));
  predicted.missing_columns = predictions.missing_columns;
  return predicted;
}

}  // namespace shoal::sql
