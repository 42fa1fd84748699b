#include "data/parquet/parquet_rows.h"

#include <fmt/format.h>

#include <utility>

#include "data/parquet/parquet_column.h"

namespace shoal::data {

ParquetRows::ParquetRows(const SourceFile& file, std::unique_ptr<ByteRanges> bytes,
                         ParquetFooter footer)
    : file_(file), bytes_(std::move(bytes)), footer_(std::move(footer)) {}
ParquetRows::~ParquetRows() = default;

Result<std::unique_ptr<ParquetRows>> ParquetRows::Open(
    const SourceFile& file, const std::function<bool(std::string_view)>& wants, bool with_bounds) {
  TRY_ASSIGN(auto bytes, ByteRanges::Open(file));
  TRY_ASSIGN(ParquetFooter footer, ReadParquetFooter(file, bytes.get(), with_bounds));
  std::unique_ptr<ParquetRows> rows(new ParquetRows(file, std::move(bytes), std::move(footer)));
  for (size_t i = 0; i < rows->footer_.columns.size(); ++i) {
    const ParquetColumn& column = rows->footer_.columns[i];
    if (!column.left_out && wants(column.name)) {
      rows->readers_.push_back(
          std::make_unique<ParquetColumnReader>(column, i, rows->bytes_.get()));
    }
  }
  return rows;
}

std::vector<size_t> ParquetRows::columns_read() const {
  std::vector<size_t> columns;
  for (const auto& reader : readers_) columns.push_back(reader->index());
  return columns;
}

Status ParquetRows::Enter(size_t group) {
  const ParquetRowGroup& entered = footer_.groups.at(group);
  rows_left_ = entered.rows;
  for (const auto& reader : readers_) TRY(reader->Enter(entered.chunks[reader->index()]));
  return Status::Ok();
}

Result<bool> ParquetRows::Next(FieldVisitor* visitor) {
  if (rows_left_ == 0) return false;
  --rows_left_;
  for (const auto& reader : readers_) {
    values_.clear();
    const ParquetColumn& column = reader->column();
    if (const Status status = reader->NextRow(&values_); !status.ok()) {
      return status.With(fmt::format("data file {}, column {}", file_.path.string(), column.name));
    }
    if (column.repetitions == 0) {
      visitor->Value(column.name, values_.front());
    } else {
      visitor->List(column.name, values_);
    }
  }
  return true;
}

Status ParquetRows::Skip(uint64_t rows) {
  class Nobody final : public FieldVisitor {
    void Value(std::string_view, const TableCell&) override {}
    void List(std::string_view, std::span<const TableCell>) override {}
    void LeftOut(std::string_view) override {}
  };
  Nobody nobody;
  for (; rows > 0; --rows) TRY(Next(&nobody).status());
  return Status::Ok();
}

uint64_t ParquetRows::bytes_read() const {
  uint64_t bytes = 0;
  for (const auto& reader : readers_) bytes += reader->bytes_read();
  return bytes;
}

}  // namespace shoal::data
