// `shoal data read`: one part of a dataset on standard output, or in a file. Inside a job's task it
// reads the part of that task (SHOAL_DATA); the Python module shoal.data starts it so.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/data/data_commands.h"
#include "cli/terminal/report.h"
#include "data/datasets/column_batch.h"
#include "data/datasets/part_files.h"
#include "data/datasets/row_reader.h"
#include "data/datasets/row_writer.h"
#include "data/formats/tfrecord.h"

namespace shoal::cli {
namespace {

constexpr size_t kBlock = 256 << 10;
constexpr size_t kFrameBytes = 16 << 20;  // of texts and lists, after which a frame ends early

struct ReadArguments {
  std::vector<std::string> sources;  // or the name of a data set of the job
  std::string format;
  std::string part;    // "I/N"
  std::string within;  // "I/N" of that
  std::string as = "records";
  std::vector<std::string> columns;
  std::vector<std::string> texts;
  std::string from;
  std::string into;
  uint64_t batch = 1024;
  std::optional<uint64_t> shuffle;  // the seed
  uint64_t shuffle_window = data::ShuffleOptions().window;
  double max_bad = 0;
};

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool ParseCount(std::string_view text, uint64_t* value) {
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, *value);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

// "2/8" is part 2, from 0, of 8.
Status ParsePart(const char* option, const std::string& text, uint64_t* part, uint64_t* parts) {
  constexpr uint64_t kMostParts = 1'000'000;
  const size_t slash = text.find('/');
  if (slash != std::string::npos && ParseCount(text.substr(0, slash), part) &&
      ParseCount(text.substr(slash + 1), parts) && *part < *parts && *parts <= kMostParts)
    return Status::Ok();
  return InvalidArgument(fmt::format("{}: got {}, expected I/N with I from 0 to N - 1, such as 0/4",
                                     option, EscapedUtf8(text)));
}

// What is read: of a data set of the job, with the part of this task.
struct Chosen {
  std::vector<std::string> sources;
  data::RecordFormat format = data::RecordFormat::kText;
  data::PartNumber number;
};

// The entry of SHOAL_DATA; none.
std::optional<json::object> DataOfJob(const std::string& name) {
  const std::string text = Variable("SHOAL_DATA");
  if (text.empty()) return std::nullopt;
  const auto parsed = ParseJson(text);
  if (!parsed.ok() || !parsed->is_array()) return std::nullopt;
  for (const json::value& one : parsed->get_array())
    if (one.is_object() && GetStringOr(one.get_object(), "name", "") == name)
      return one.get_object();
  return std::nullopt;
}

// The part of this task, and of this process among those of the task.
Status PartOfTask(const std::string& name, const json::object& data, data::PartNumber* number) {
  const std::string role = GetStringOr(data, "shard_by", "");
  const std::string own = Variable("SHOAL_ROLE");
  if (role != own)
    return FailedPrecondition(
        fmt::format("the data {} is divided among the tasks of the role {}, and this is one of {}; "
                    "name a part, "
                    "such as --part 0/1 for all of it, or set data.{}.shard_by",
                    name, role, own, name));
  const auto count = [](const char* variable, uint64_t otherwise, uint64_t* to) -> Status {
    const std::string text = Variable(variable);
    *to = otherwise;
    if (text.empty() || ParseCount(text, to)) return Status::Ok();
    return InvalidArgument(fmt::format("{}: got {}, expected a number", variable, text));
  };
  // Of mpirun's processes, which are started by one task, each reads a part.
  for (const auto& [rank, size] : {std::pair("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
                                   std::pair("PMI_RANK", "PMI_SIZE")}) {
    if (Variable(rank).empty()) continue;
    TRY(count(rank, 0, &number->part));
    return count(size, 1, &number->parts);
  }
  TRY(count("SHOAL_INDEX", 0, &number->part));
  TRY(count("SHOAL_REPLICAS", 1, &number->parts));
  TRY(count("SHOAL_LOCAL_RANK", 0, &number->within));
  return count("SHOAL_LOCAL_SIZE", 1, &number->of);
}

Result<Chosen> Choose(const ReadArguments& arguments) {
  Chosen chosen;
  chosen.sources = arguments.sources;
  std::string format = arguments.format;
  const auto data = arguments.sources.size() == 1 ? DataOfJob(arguments.sources[0]) : std::nullopt;
  if (data) {
    chosen.sources.clear();
    const json::value* const list = data->if_contains("sources");
    if (list != nullptr && list->is_array())
      for (const json::value& one : list->get_array())
        if (one.is_string()) chosen.sources.emplace_back(one.get_string());
    if (chosen.sources.empty()) return InvalidArgument("SHOAL_DATA: expected a list of sources");
    const std::string told = GetStringOr(*data, "format", "text");
    if (format.empty() && told != "text") format = told == "json" ? "jsonl" : told;
    if (arguments.part.empty()) TRY(PartOfTask(arguments.sources[0], *data, &chosen.number));
  }
  if (!arguments.part.empty())
    TRY(ParsePart("--part", arguments.part, &chosen.number.part, &chosen.number.parts));
  if (!arguments.within.empty()) {
    uint64_t within = 0;
    uint64_t of = 1;
    TRY(ParsePart("--within", arguments.within, &within, &of));
    chosen.number.within = chosen.number.within * of + within;
    chosen.number.of *= of;
  }
  TRY_ASSIGN(chosen.format, FormatOf(format, chosen.sources));
  return chosen;
}

// Writes to standard output, and empties the text. False once its reader has gone.
Result<bool> WriteOut(std::string* bytes) {
  for (size_t done = 0; done < bytes->size();) {
    const ssize_t put = ::write(STDOUT_FILENO, bytes->data() + done, bytes->size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EPIPE) return false;
    if (put < 0) return ErrnoStatus(errno, "standard output");
    done += static_cast<size_t>(put);
  }
  bytes->clear();
  return true;
}

// The records as they are stored; the first line of a table before them.
class StoredRecords {
 public:
  StoredRecords(data::RowReader* rows, data::RecordFormat format) : rows_(*rows), format_(format) {}
  // Appends the next record; false at the end.
  Result<bool> Next(std::string* to) {
    data::Record record;
    TRY_ASSIGN(const bool more, rows_.NextRecord(&record));
    if (!headed_) AppendHead(to);
    headed_ = true;
    if (!more) return false;
    if (format_ == data::RecordFormat::kTfRecord) {
      data::AppendTfRecord(record.bytes, to);
    } else {
      to->append(record.bytes);
      to->push_back('\n');
    }
    return true;
  }

 private:
  void AppendHead(std::string* to) const {
    const std::vector<std::string>& columns = rows_.records().columns();
    const char delimiter = format_ == data::RecordFormat::kTsv ? '\t' : ',';
    for (size_t i = 0; i < columns.size(); ++i) {
      if (i > 0) to->push_back(delimiter);
      (void)data::AppendCsvCell(columns[i], delimiter, to);
    }
    if (!columns.empty()) to->push_back('\n');
  }
  data::RowReader& rows_;
  const data::RecordFormat format_;
  bool headed_ = false;
};

Status WriteRecords(data::RowReader* rows, data::RecordFormat format) {
  StoredRecords records(rows, format);
  std::string block;
  for (bool more = true; more;) {
    TRY_ASSIGN(more, records.Next(&block));
    if (more && block.size() < kBlock) continue;
    TRY_ASSIGN(const bool open, WriteOut(&block));
    if (!open) break;
  }
  return Status::Ok();
}

Status WriteJson(data::RowReader* rows) {
  TRY_ASSIGN(const auto writer, data::RowWriter::Make(data::RecordFormat::kJsonLines, {}));
  for (bool more = true; more;) {
    TRY_ASSIGN(more, rows->NextRow(writer.get()));
    if (more && writer->text()->size() < kBlock) continue;
    TRY_ASSIGN(const bool open, WriteOut(writer->text()));
    if (!open) break;
  }
  return Status::Ok();
}

// Frames of columns; the last one, with the position at the end, has no rows.
Status WriteBatches(data::RowReader* rows, const std::vector<data::BatchColumn>& columns,
                    uint64_t size) {
  data::ColumnBatch batch(columns);
  std::string frame;
  for (bool more = true; more;) {
    TRY_ASSIGN(more, rows->NextRow(&batch));
    if (more && batch.rows() < size && batch.bytes() < kFrameBytes) continue;
    const bool last = !more && batch.rows() > 0;
    batch.TakeFrame(data::TextOf(rows->position()), &frame);
    if (last) batch.TakeFrame(data::TextOf(rows->position()), &frame);
    TRY_ASSIGN(const bool open, WriteOut(&frame));
    if (!open) break;
  }
  return Status::Ok();
}

// The part as a file of `folder`, unless it is there.
Result<std::string> WriteFile(data::RowReader* rows, const Chosen& chosen, std::string folder,
                              const std::string& of) {
  if (!folder.ends_with('/')) folder += '/';
  const data::PartNumber& number = chosen.number;
  const std::string stem = fmt::format(
      "part-{:05}-of-{:05}", number.part * number.of + number.within, number.parts * number.of);
  const std::string mark = std::string(data::kDoneMark) + "-" + stem;
  data::ObjectStores stores;
  const auto done = data::ReadDone(&stores, folder, mark);
  const bool there = done.ok() && done->of == of && done->files.size() == 1;
  if (there) {
    const auto file = stores.Open(folder + done->files[0].name);
    if (file.ok() && (*file)->info().bytes == done->files[0].bytes)
      return folder + done->files[0].name;
  }
  const data::RecordFormat kept = chosen.format == data::RecordFormat::kParquet
                                      ? data::RecordFormat::kJsonLines
                                      : chosen.format;
  const std::string name = fmt::format("{}.{}", stem, NameOf(kept));
  TRY_ASSIGN(data::PartFile file, data::PartFile::Create(&stores, folder, name));
  StoredRecords records(rows, chosen.format);
  std::string block;
  for (;;) {
    TRY_ASSIGN(const bool more, records.Next(&block));
    TRY(file.Append(block));
    block.clear();
    if (!more) break;
    file.CountRecord();
  }
  TRY_ASSIGN(data::PartFileInfo info, file.Finish());
  TRY(data::WriteDone(&stores, folder, mark, {of, {std::move(info)}}));
  return folder + name;
}

Status ReadPart(const ReadArguments& arguments, std::string* printed) {
  TRY_ASSIGN(const Chosen chosen, Choose(arguments));
  TRY_ASSIGN(const data::Corpus corpus, OpenSources(chosen.sources, chosen.format));
  data::RowOptions options;
  options.number = chosen.number;
  options.max_bad = arguments.max_bad / 100;
  options.from = arguments.from;
  if (arguments.shuffle) options.shuffle = {*arguments.shuffle, arguments.shuffle_window};
  if (!arguments.columns.empty()) {
    options.wants = [&arguments](std::string_view name) {
      return std::ranges::find(arguments.columns, name) != arguments.columns.end();
    };
  }
  std::vector<data::BatchColumn> columns;
  if (arguments.as == "batches" || !arguments.columns.empty()) {
    TRY_ASSIGN(columns,
               data::FindBatchColumns(corpus, chosen.format, options.wants, arguments.texts));
    TRY(CheckNamed(columns, arguments.columns));
    TRY(CheckNamed(columns, arguments.texts));
  }
  TRY_ASSIGN(const auto rows, data::RowReader::Open(corpus, chosen.format, options));
  if (!arguments.into.empty()) {
    const data::ReadPosition begin{chosen.number, corpus.fingerprint(), 0, {}, options.shuffle};
    const std::string of = VersionOf(corpus) + " " + data::TextOf(begin);
    TRY_ASSIGN(*printed, WriteFile(rows.get(), chosen, arguments.into, of));
    *printed += "\n";
  } else if (arguments.as == "batches") {
    TRY(WriteBatches(rows.get(), columns, arguments.batch));
  } else if (arguments.as == "jsonl") {
    TRY(WriteJson(rows.get()));
  } else {
    TRY(WriteRecords(rows.get(), chosen.format));
  }
  for (const data::BadRecord& bad : rows->records().first_bad())
    PrintNote("malformed: " + bad.text());
  return Status::Ok();
}

int Read(const ReadArguments& arguments) {
  ::signal(SIGPIPE, SIG_IGN);
  std::string printed;
  if (const Status status = ReadPart(arguments, &printed); !status.ok()) return PrintError(status);
  return printed.empty() ? 0 : PrintResult(printed);
}

// Without it a negative seed is taken for a large one.
std::string CheckWholeNumber(const std::string& text) {
  uint64_t value = 0;
  return ParseCount(text, &value)
             ? ""
             : "got " + EscapedUtf8(text) + ", expected a whole number from 0 on";
}

void AddOptions(CLI::App* sub, ReadArguments* arguments) {
  sub->add_option("SOURCE", arguments->sources,
                  "A data set of the job that this task belongs to, by its name; else paths, URIs, "
                  "patterns, or folders ending with '/'")
      ->required();
  sub->add_option("--part", arguments->part,
                  "Part I of N equal parts, from 0 [of a job: the one of this task; else 0/1]")
      ->type_name("I/N");
  sub->add_option("--within", arguments->within, "Part I of N of that part, such as of a process")
      ->type_name("I/N");
  sub->add_option("--as", arguments->as,
                  "records: as they are stored, those of Parquet as JSON lines; jsonl; batches: "
                  "frames of columns (docs/formats/batches.md)")
      ->check(CLI::IsMember({"records", "jsonl", "batches"}).description(""))
      ->type_name("FORM [records]");
  sub->add_option("--columns", arguments->columns, "Only these, of jsonl and batches")
      ->delimiter(',')
      ->type_name("NAME,…");
  sub->add_option("--texts", arguments->texts,
                  "Columns of batches that are texts even if they read as numbers")
      ->delimiter(',')
      ->type_name("NAME,…");
  sub->add_option("--batch", arguments->batch, "Rows of a batch [1024]")
      ->check(CLI::Range(uint64_t{1}, uint64_t{10'000'000}).description(""))
      ->type_name("N");
  sub->add_option("--from", arguments->from, "A position that a batch gave, to go on behind it")
      ->type_name("POSITION");
  sub->add_option("--shuffle", arguments->shuffle,
                  "Give the records in the pseudo-random order of this seed, such as the number of "
                  "the epoch")
      ->check(CLI::Validator(CheckWholeNumber, ""))
      ->type_name("SEED");
  sub->add_option("--shuffle-window", arguments->shuffle_window,
                  "Records that are in memory to be drawn from, at most 64 MiB of them [100000]")
      ->check(CLI::Range(uint64_t{1}, data::kMostShuffled).description(""))
      ->type_name("N");
  sub->add_option(
         "--into", arguments->into,
         "Write the part to a file of this folder, with a mark once it is whole, and print "
         "its name; a file that is there already is not written again")
      ->type_name("FOLDER");
  sub->add_option("--format", arguments->format, kFormatHelp)->type_name("FORMAT");
  AddMaxBadOption(sub, &arguments->max_bad);
}

}  // namespace

void AddDataRead(CLI::App* data, Run* chosen) {
  auto arguments = std::make_shared<ReadArguments>();
  CLI::App* const sub =
      data->add_subcommand("read", "Print an exact part, such as the one of a job's task");
  sub->footer(
      "Examples:\n"
      "  shoal data read --part 0/4 people.csv\n"
      "  shoal data read --part 0/4 --as jsonl --columns age,zip people.parquet\n"
      "  shoal data read --part 0/4 --into parts/ 's3://bucket/news/part-*.txt'\n\n"
      "A task of a job with `data: {train: …}` reads its part by `data read train`; the program is "
      "$SHOAL_PROGRAM there.");
  AddOptions(sub, arguments.get());
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& /*context*/) { return Read(*arguments); };
  });
}

// Of shoal-task: only what programs of jobs need.
void AddTaskData(CLI::App& app, Run* chosen) {
  CLI::App* const data = app.add_subcommand("data", "Read the data of a job");
  AddDataRead(data, chosen);
  data->require_subcommand(1);
}

}  // namespace shoal::cli
