// `shoal data split`: files of equally many records, or a training and a test set.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <utility>

#include "base/utf8.h"
#include "cli/data/data_commands.h"
#include "cli/terminal/report.h"
#include "data/datasets/part_files.h"
#include "data/datasets/row_reader.h"
#include "data/datasets/row_writer.h"
#include "data/formats/tfrecord.h"
#include "data/objects/object_stores.h"
#include "job/execution/plan.h"

namespace shoal::cli {
namespace {

constexpr uint64_t kMostFiles = 1000;  // that are written at once

struct SplitArguments {
  std::vector<std::string> sources;  // the last is the target
  std::string format;
  uint64_t parts = 0;
  double test = 0;  // per cent
  uint64_t seed = 0;
  double max_bad = 0;
};

// A number of 64 bits that depends on all bits of both (splitmix64's mixer).
uint64_t Mixed(uint64_t seed, uint64_t number) {
  uint64_t x = seed * 0x9e3779b97f4a7c15 + number + 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Which file a record goes to.
class Chooser {
 public:
  explicit Chooser(const SplitArguments& arguments)
      : parts_(arguments.parts),
        seed_(arguments.seed),
        // Exact in a double; a share of 100 % is refused.
        below_(static_cast<uint64_t>(std::ldexp(arguments.test / 100, 53))) {}
  size_t FileOf(uint64_t record) const {
    if (parts_ > 0) return record % parts_;
    return Mixed(Mixed(seed_, 0), record) >> 11 < below_ ? 1 : 0;
  }

 private:
  const uint64_t parts_;
  const uint64_t seed_;
  const uint64_t below_;
};

Status CheckSplit(const SplitArguments& arguments) {
  if ((arguments.parts == 0) == (arguments.test == 0))
    return InvalidArgument("expected either --parts N or --test PERCENT");
  return Status::Ok();
}

std::vector<std::string> NamesOf(const SplitArguments& arguments, data::RecordFormat format) {
  const std::string_view ending = NameOf(format);
  if (arguments.parts == 0)
    return {fmt::format("train.{}", ending), fmt::format("test.{}", ending)};
  std::vector<std::string> names;
  for (uint64_t i = 0; i < arguments.parts; ++i)
    names.push_back(fmt::format("part-{:05}-of-{:05}.{}", i, arguments.parts, ending));
  return names;
}

// A record as it is stored in files of its format.
void AppendStored(const data::Record& record, data::RecordFormat format, std::string* to) {
  if (format == data::RecordFormat::kTfRecord) return data::AppendTfRecord(record.bytes, to);
  to->append(record.bytes);
  to->push_back('\n');
}

std::string HeadOf(const std::vector<std::string>& columns, data::RecordFormat format) {
  const char delimiter = format == data::RecordFormat::kTsv ? '\t' : ',';
  std::string head;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) head.push_back(delimiter);
    (void)data::AppendCsvCell(columns[i], delimiter, &head);
  }
  return columns.empty() ? head : head + "\n";
}

struct SplitResult {
  data::DoneFiles done;
  std::vector<data::BadRecord> bad;
};

Result<SplitResult> SplitAll(const Context& context, const SplitArguments& arguments) {
  TRY(CheckSplit(arguments));
  std::vector<std::string> sources = arguments.sources;
  std::string folder = sources.back() + (sources.back().ends_with('/') ? "" : "/");
  sources.pop_back();
  TRY_ASSIGN(const data::RecordFormat format, FormatOf(arguments.format, sources));
  TRY_ASSIGN(const data::Corpus corpus, OpenSources(sources, format));
  data::ObjectStores stores;
  const std::string mark(data::kDoneMark);
  SplitResult result;
  result.done.of = fmt::format("{} {} {}/{} {} {}", VersionOf(corpus), NameOf(format),
                               arguments.parts, arguments.test, arguments.seed, arguments.max_bad);
  if (const auto before = data::ReadDone(&stores, folder, mark); before.ok()) {
    if (before->of != result.done.of)
      return AlreadyExists(folder + " holds parts of other data, or of another split, which " +
                           mark + " says; name another folder, or remove them");
    result.done = *before;
    return result;
  }
  // Checked where they are read: a file of records that are none would be found only later.
  data::RecordReader reader(corpus, format, {.max_bad = arguments.max_bad / 100});
  const bool rows = format == data::RecordFormat::kParquet;
  const data::RecordFormat kept = rows ? data::RecordFormat::kJsonLines : format;
  std::vector<data::PartFile> files;
  for (const std::string& name : NamesOf(arguments, kept)) {
    TRY_ASSIGN(data::PartFile file, data::PartFile::Create(&stores, folder, name));
    files.push_back(std::move(file));
  }
  const Chooser chooser(arguments);
  ProgressLine progress(context, "split");
  data::Record record;
  std::string stored;
  constexpr uint64_t kStep = 4096;
  for (uint64_t i = 0;; ++i) {
    TRY_ASSIGN(const bool more, reader.Next(&record));
    if (i == 0)
      for (data::PartFile& file : files) TRY(file.Append(HeadOf(reader.columns(), format)));
    if (!more) break;
    data::PartFile& file = files[chooser.FileOf(i)];
    stored.clear();
    AppendStored(record, kept, &stored);
    TRY(file.Append(stored));
    file.CountRecord();
    if (i % kStep == 0) progress.Update(reader.bytes_read(), corpus.stored_bytes());
  }
  for (data::PartFile& file : files) {
    TRY_ASSIGN(data::PartFileInfo info, file.Finish());
    result.done.files.push_back(std::move(info));
  }
  TRY(data::WriteDone(&stores, folder, mark, result.done));
  result.bad = reader.first_bad();
  return result;
}

int Split(const Context& context, const SplitArguments& arguments) {
  const auto result = SplitAll(context, arguments);
  if (!result.ok()) return PrintError(result.status());
  for (const data::BadRecord& bad : result->bad) PrintNote("malformed, left out: " + bad.text());
  if (context.json) {
    std::string lines;
    for (const data::PartFileInfo& file : result->done.files)
      lines += JsonLine({{"name", EscapedUtf8(file.name)},
                         {"records", file.records},
                         {"bytes", file.bytes},
                         {"sha256", file.sha256}});
    return PrintConfirmation(lines);
  }
  std::string text = fmt::format("split {} records into {} files\n", result->done.records(),
                                 result->done.files.size());
  if (arguments.parts == 0)
    text = fmt::format("{} records to train, {} to test\n", result->done.files[0].records,
                       result->done.files[1].records);
  return PrintConfirmation(text);
}

}  // namespace

void AddDataSplit(CLI::App* data, Run* chosen) {
  auto arguments = std::make_shared<SplitArguments>();
  CLI::App* const sub = data->add_subcommand(
      "split", "Divide records into equal files, or into a training and a test set");
  sub->footer(
      "Examples:\n"
      "  shoal data split --parts 8 people.csv parts/\n"
      "  shoal data split --test 10 --seed 7 's3://bucket/events/*.jsonl' s3://bucket/split/\n\n"
      "Record i goes to file i modulo N, so that files differ by one record at most. Records stay "
      "as "
      "they are stored; those of Parquet become JSON lines. _SUCCESS, which is written last, has "
      "the "
      "files' records, lengths and SHA-256.");
  sub->add_option("FROM… TO", arguments->sources, "Sources as of ls, and at the end a folder")
      ->required()
      ->expected(2, CLI::detail::expected_max_vector_size);
  sub->add_option("--parts", arguments->parts, "The number of files")
      ->check(CLI::Range(uint64_t{1}, kMostFiles).description(""))
      ->type_name("N");
  sub->add_option("--test", arguments->test,
                  "In place of parts: the share of test records, drawn by the seed, in per cent")
      ->check(CLI::Range(0.000001, 99.999999).description(""))
      ->type_name("PERCENT");
  sub->add_option("--seed", arguments->seed, "Of --test [0]")->type_name("N");
  sub->add_option("--format", arguments->format, kFormatHelp)->type_name("FORMAT");
  AddMaxBadOption(sub, &arguments->max_bad);
  sub->fallthrough();  // --json is the parent's
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return Split(context, *arguments); };
  });
}

}  // namespace shoal::cli
