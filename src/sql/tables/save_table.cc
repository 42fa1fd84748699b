#include "sql/tables/save_table.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/output_file.h"
#include "base/utf8.h"
#include "data/objects/object_uri.h"
#include "sql/tables/row_writer.h"
#include "sql/tables/staged_directory.h"

namespace shoal::sql {
namespace {

namespace fs = std::filesystem;
using data::RecordFormat;

constexpr size_t kBuffer = size_t{1} << 20;
constexpr std::string_view kDone = "_SUCCESS";
constexpr std::string_view kPart = "part-";

std::vector<std::string> NamesOf(const Table& table) {
  std::vector<std::string> names;
  for (const data::SchemaColumn& column : table.columns) names.push_back(column.name);
  return names;
}

bool IsLines(RecordFormat format) {
  return format == RecordFormat::kCsv || format == RecordFormat::kTsv ||
         format == RecordFormat::kJsonLines;
}

// Writes the rows of a table to a descriptor.
class RowFile {
 public:
  RowFile(int fd, const SaveOptions& options) : fd_(fd), options_(options) {}

  Status WriteRows(const Table& table, bool header) {
    if (header) buffer_ = HeaderLine(options_.format, NamesOf(table));
    TRY_ASSIGN(TableReader reader, TableReader::Open(table));
    if (table.format == options_.format) {
      TRY(CopyRecords(&reader));
    } else {
      TRY(ConvertRows(table, &reader));
    }
    return Flush(0);
  }
  uint64_t rows() const { return rows_; }

 private:
  Status CopyRecords(TableReader* reader) {
    data::Record record;
    for (;;) {
      TRY_ASSIGN(const bool more, reader->NextRecord(&record));
      if (!more) return Status::Ok();
      buffer_ += record.bytes;
      buffer_ += '\n';
      TRY(EndRow());
    }
  }
  Status ConvertRows(const Table& table, TableReader* reader) {
    std::vector<json::value> row;
    for (;;) {
      TRY_ASSIGN(const bool more, reader->Next(&row));
      if (!more) return Status::Ok();
      TRY(AppendRow(options_.format, table.columns, row, &buffer_)
              .With("row " + std::to_string(rows_ + 1)));
      TRY(EndRow());
    }
  }
  Status EndRow() {
    ++rows_;
    if (options_.stopped && options_.stopped()) return Cancelled("stopped while it saved");
    return Flush(kBuffer);
  }
  Status Flush(size_t limit) {
    if (buffer_.size() < limit) return Status::Ok();
    TRY(WriteAll(fd_, buffer_));
    buffer_.clear();
    return Status::Ok();
  }

  const int fd_;
  const SaveOptions& options_;
  std::string buffer_;
  uint64_t rows_ = 0;
};

Result<uint64_t> WriteTable(const Table& table, const SaveOptions& options, const fs::path& file,
                            bool header) {
  TRY_ASSIGN(const UniqueFd fd, OpenFile(file, O_WRONLY | O_CREAT | O_EXCL, 0666));
  RowFile rows(fd.get(), options);
  TRY(rows.WriteRows(table, header).With(file.filename().string()));
  if (::fsync(fd.get()) != 0) return ErrnoStatus(errno, "cannot sync " + file.string());
  return rows.rows();
}

// Whether the name has an ending of the format.
bool NamesFile(const fs::path& path, RecordFormat format) {
  const std::string ending = path.extension().string();
  return ending == "." + std::string(data::NameOf(format)) ||
         (format == RecordFormat::kJsonLines && ending == ".json") ||
         (format == RecordFormat::kText && ending == ".txt");
}

std::string Ending(RecordFormat format) { return "." + std::string(data::NameOf(format)); }

// Names of the columns of what a table is appended to.
Status CheckSameColumns(const Table& table, const Table& there, const std::string& path) {
  if (NamesOf(table) == NamesOf(there)) return Status::Ok();
  const auto list = [](const Table& one) {
    std::string names;
    for (const std::string& name : NamesOf(one)) names += (names.empty() ? "" : ", ") + name;
    return names.substr(0, 200);
  };
  return FailedPrecondition(path + " has the columns " + list(there) + ", the table " +
                            list(table) + "; append to a table with the same columns");
}

// ---- one file

Result<Saved> SaveFile(const Table& table, const fs::path& path, const SaveOptions& options,
                       bool exists) {
  const fs::path aside = options.scratch / "saved";
  std::error_code ignored;  // of an earlier statement
  fs::remove(aside, ignored);
  Saved saved;
  const bool append =
      exists && options.mode == SaveMode::kAppend && fs::file_size(path, ignored) > 0;
  if (append) {
    TRY_ASSIGN(const Table there, OpenTable(options.format, path.string()));
    if (IsLines(options.format)) TRY(CheckSameColumns(table, there, path.string()));
    TRY(WriteTable(there, options, aside, true).status());
    TRY_ASSIGN(const UniqueFd fd, OpenFile(aside, O_WRONLY | O_APPEND));
    RowFile rows(fd.get(), options);
    TRY(rows.WriteRows(table, false));
    saved.rows = rows.rows();
  } else {
    TRY_ASSIGN(saved.rows, WriteTable(table, options, aside, true));
  }
  const Status copied = CopyOutputFile(aside, path);
  fs::remove(aside, ignored);
  TRY(copied);
  return saved;
}

// ---- a directory of parts

// FailedPrecondition unless a table was saved to the directory, or it is empty.
Status CheckHoldsTable(const fs::path& directory) {
  std::error_code error;
  bool done = false, empty = true;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    empty = false;
    done = done || name == kDone;
    std::error_code ignored;  // then it is no regular file
    const bool ours = (name == kDone || name.starts_with(kPart) ||
                       name.starts_with("." + std::string(kPart)) || name.starts_with("._")) &&
                      entry.is_regular_file(ignored) && !entry.is_symlink(ignored);
    if (!ours)
      return FailedPrecondition(directory.string() + " holds " + EscapedUtf8(name) +
                                ", which is no part of a saved table; save to another directory");
  }
  if (error) return ErrnoStatus(error.value(), "cannot read " + directory.string());
  if (!empty && !done)
    return FailedPrecondition(directory.string() + " holds files but no " + std::string(kDone) +
                              ", so it is no saved table; save to another directory");
  return Status::Ok();
}

std::string PartName(unsigned number, RecordFormat format) {
  std::string digits = std::to_string(number);
  digits.insert(0, digits.size() < 5 ? 5 - digits.size() : 0, '0');
  return std::string(kPart) + digits + Ending(format);
}

Result<Saved> SaveNewDirectory(const Table& table, const fs::path& path, const SaveOptions& options,
                               bool exists) {
  TRY_ASSIGN(StagedDirectory fresh, StagedDirectory::Create(path));
  Saved saved;
  TRY_ASSIGN(saved.rows,
             WriteTable(table, options, fresh.path() / PartName(0, options.format), true));
  TRY(WriteFileAtomically(fresh.path() / kDone, ""));
  TRY(fresh.MoveTo(path, exists));
  return saved;
}

Result<Saved> AppendPart(const Table& table, const fs::path& path, const SaveOptions& options) {
  if (IsLines(options.format)) {
    TRY_ASSIGN(const Table there, OpenTable(options.format, path.string()));
    TRY(CheckSameColumns(table, there, path.string()));
  }
  const fs::path aside = path / ("." + std::string(kPart) + std::to_string(::getpid()));
  std::error_code ignored;  // of an earlier process with this number
  fs::remove(aside, ignored);
  Saved saved;
  Result<uint64_t> rows = WriteTable(table, options, aside, true);
  Status moved = rows.status();
  for (unsigned number = 0; moved.ok(); ++number) {
    const fs::path part = path / PartName(number, options.format);
    if (::renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, part.c_str(), RENAME_NOREPLACE) == 0) break;
    if (errno != EEXIST) moved = ErrnoStatus(errno, "cannot write " + part.string());
  }
  fs::remove(aside, ignored);
  TRY(moved);
  saved.rows = *rows;
  TRY(SyncDirectory(path));
  return saved;
}

Result<Saved> SaveDirectory(const Table& table, const fs::path& path, const SaveOptions& options,
                            bool exists) {
  if (!exists) return SaveNewDirectory(table, path, options, false);
  TRY(CheckHoldsTable(path));
  std::error_code ignored;  // an unreadable directory was reported above
  const bool append = options.mode == SaveMode::kAppend && fs::exists(path / kDone, ignored);
  return append ? AppendPart(table, path, options) : SaveNewDirectory(table, path, options, true);
}

Status CheckFormat(const Table& table, RecordFormat format) {
  if (IsLines(format) || table.format == format) return Status::Ok();
  return InvalidArgument("a table of " + std::string(data::NameOf(table.format)) +
                         " cannot be saved as " + std::string(data::NameOf(format)) +
                         "; save it as csv, tsv or json");
}

}  // namespace

const std::vector<std::string>& SaveFormats() {
  static const std::vector<std::string> formats = {"csv",    "tsv",    "json", "jsonl",
                                                   "libsvm", "libffm", "text"};
  return formats;
}

Result<Saved> SaveTable(const Table& table, const std::string& path, const SaveOptions& options) {
  if (data::IsRemoteUri(path))
    return InvalidArgument(
        path + " is a URI; save to a path of this machine and copy it with `shoal data copy`");
  TRY(CheckFormat(table, options.format));
  fs::path target(AbsolutePath(path));
  if (target.has_relative_path() && !target.has_filename()) target = target.parent_path();
  std::error_code error;
  const fs::file_status status = fs::status(target, error);
  const bool exists = fs::exists(status);
  if (exists && options.mode == SaveMode::kIgnore) return Saved{true, 0};
  if (exists && options.mode == SaveMode::kErrorIfExists)
    return AlreadyExists(
        target.string() +
        " exists; write `save overwrite` or `save append`, or save to another path");
  const bool file = exists ? !fs::is_directory(status) : NamesFile(target, options.format);
  if (file && !exists) TRY(MakeDirectories(target.parent_path()));
  return file ? SaveFile(table, target, options, exists)
              : SaveDirectory(table, target, options, exists);
}

}  // namespace shoal::sql
