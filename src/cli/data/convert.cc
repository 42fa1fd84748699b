// `shoal data convert`: records of one format as those of another.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <utility>

#include "base/utf8.h"
#include "cli/data/data_commands.h"
#include "cli/terminal/report.h"
#include "data/datasets/column_batch.h"
#include "data/datasets/row_reader.h"
#include "data/datasets/row_writer.h"
#include "data/objects/object_stores.h"
#include "job/execution/plan.h"

namespace shoal::cli {
namespace {

constexpr size_t kConvertBlock = 1 << 20;

struct ConvertArguments {
  std::vector<std::string> sources;  // the last is the target
  std::string format;
  std::string to;
  std::vector<std::string> columns;
  double max_bad = 0;
};

struct Converted {
  std::string target;
  uint64_t records = 0;
  uint64_t bytes = 0;
  std::vector<data::BadRecord> bad;
};

Status CheckTarget(const std::string& target) {
  if (target.ends_with('/'))
    return InvalidArgument("got the folder " + target + " as the target, expected a file");
  if (target.ends_with(".gz") || target.ends_with(".zst"))
    return InvalidArgument("got the target " + target +
                           ", expected a name without .gz or .zst: it is written unpacked");
  return Status::Ok();
}

Result<Converted> ConvertAll(const Context& context, const ConvertArguments& given) {
  Converted done;
  std::vector<std::string> sources = given.sources;
  done.target = sources.back();
  sources.pop_back();
  TRY(CheckTarget(done.target));
  TRY_ASSIGN(const data::RecordFormat from, FormatOf(given.format, sources));
  TRY_ASSIGN(const data::RecordFormat to, FormatOf(given.to, {done.target}));
  TRY_ASSIGN(const data::Corpus corpus, OpenSources(sources, from));
  data::RowOptions options;
  options.max_bad = given.max_bad / 100;
  if (!given.columns.empty())
    options.wants = [&given](std::string_view name) {
      return std::ranges::find(given.columns, name) != given.columns.end();
    };
  TRY_ASSIGN(auto columns, data::FindBatchColumns(corpus, from, options.wants, {}));
  TRY(CheckNamed(columns, given.columns));
  TRY_ASSIGN(const auto writer, data::RowWriter::Make(to, std::move(columns)));
  TRY_ASSIGN(const auto rows, data::RowReader::Open(corpus, from, options));
  data::ObjectStores stores;
  TRY_ASSIGN(const auto file, stores.Create(done.target));
  ProgressLine progress(context, "converted");
  *writer->text() = writer->Head();
  for (bool more = true; more;) {
    TRY_ASSIGN(more, rows->NextRow(writer.get()));
    if (more && writer->text()->size() < kConvertBlock) continue;
    done.bytes += writer->text()->size();
    TRY(file->Append(*writer->text()));
    writer->text()->clear();
    progress.Update(rows->records().bytes_read(), corpus.stored_bytes());
  }
  TRY(file->Finish().status());
  done.records = rows->records().good();
  done.bad = rows->records().first_bad();
  return done;
}

int Convert(const Context& context, const ConvertArguments& arguments) {
  const auto done = ConvertAll(context, arguments);
  if (!done.ok()) return PrintError(done.status());
  for (const data::BadRecord& bad : done->bad) PrintNote("malformed, left out: " + bad.text());
  if (context.json)
    return PrintConfirmation(JsonLine(
        {{"to", EscapedUtf8(done->target)}, {"records", done->records}, {"bytes", done->bytes}}));
  return PrintConfirmation(fmt::format("converted {} records, {}\n", done->records,
                                       job::FormatBytes(static_cast<int64_t>(done->bytes))));
}

}  // namespace

void AddDataConvert(CLI::App* data, Run* chosen) {
  auto arguments = std::make_shared<ConvertArguments>();
  CLI::App* const sub = data->add_subcommand("convert", "Write records in another format");
  sub->footer(
      "Examples:\n"
      "  shoal data convert people.parquet people.csv\n"
      "  shoal data convert 's3://bucket/events/*.jsonl' s3://bucket/events.tfrecord\n"
      "  shoal data convert --columns body articles.parquet articles.txt    # text, to learn words "
      "of\n\n"
      "Columns and their types are those of the first 1000 records. The target appears when it is "
      "whole.");
  sub->add_option(
         "FROM… TO", arguments->sources,
         "Sources as of ls, and at the end the target: csv, tsv, jsonl, tfrecord, libsvm, text")
      ->required()
      ->expected(2, CLI::detail::expected_max_vector_size);
  sub->add_option("--format", arguments->format, kFormatHelp)->type_name("FORMAT");
  sub->add_option("--to", arguments->to, "Format of the target [by its name's ending]")
      ->type_name("FORMAT");
  sub->add_option("--columns", arguments->columns, "Only these")
      ->delimiter(',')
      ->type_name("NAME,…");
  AddMaxBadOption(sub, &arguments->max_bad);
  sub->fallthrough();  // --json is the parent's
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return Convert(context, *arguments); };
  });
}

}  // namespace shoal::cli
