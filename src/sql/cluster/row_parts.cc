#include "sql/cluster/row_parts.h"

#include <fcntl.h>

#include <algorithm>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "sql/tables/row_writer.h"

namespace shoal::sql {
namespace {

constexpr size_t kBuffers = size_t{64} << 20;
constexpr size_t kMaxBuffer = size_t{1} << 20;

// A part, which is opened for each write, so that there may be more parts than open files.
class Part {
 public:
  explicit Part(std::filesystem::path file) : file_(std::move(file)) {}
  std::string* buffer() { return &buffer_; }
  Status Flush(size_t limit) {
    if (buffer_.size() < limit) return Status::Ok();
    TRY_ASSIGN(const UniqueFd fd, OpenFile(file_, O_WRONLY | O_CREAT | O_APPEND));
    TRY(WriteAll(fd.get(), buffer_).With(file_.string()));
    buffer_.clear();
    return Status::Ok();
  }

 private:
  std::filesystem::path file_;
  std::string buffer_;
};

}  // namespace

Status WriteRowParts(const Table& table, bool csv,
                     const std::vector<std::filesystem::path>& directories,
                     const std::function<bool()>& stopped) {
  const data::RecordFormat format = csv ? data::RecordFormat::kCsv : data::RecordFormat::kJsonLines;
  std::vector<std::string> names;
  for (const data::SchemaColumn& column : table.columns) names.push_back(column.name);
  std::vector<Part> parts;
  for (const auto& directory : directories) {
    TRY(MakeDirectories(directory));
    parts.emplace_back(directory / (csv ? "part-00000.csv" : "part-00000.json"));
    *parts.back().buffer() = HeaderLine(format, names);
  }
  const size_t limit = std::min(kMaxBuffer, kBuffers / std::max<size_t>(1, parts.size()));
  TRY_ASSIGN(TableReader reader, TableReader::Open(table));
  std::vector<json::value> row;
  for (size_t i = 0;; ++i) {
    TRY_ASSIGN(const bool more, reader.Next(&row));
    if (!more) break;
    if (stopped && stopped()) return Cancelled("stopped while it wrote the workers' data");
    Part& part = parts[i % parts.size()];
    TRY(AppendRow(format, table.columns, row, part.buffer()));
    TRY(part.Flush(limit));
  }
  for (Part& part : parts) TRY(part.Flush(0));
  return Status::Ok();
}

}  // namespace shoal::sql
