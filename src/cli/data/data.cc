// `shoal data`: looks at data wherever it is, and copies it; convert.cc, split.cc and read.cc have
// the other commands.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/clock.h"
#include "base/utf8.h"
#include "cli/commands/commands.h"
#include "cli/data/data_commands.h"
#include "cli/jobs/job_text.h"
#include "cli/terminal/report.h"
#include "data/datasets/schema.h"
#include "data/formats/record_reader.h"
#include "data/formats/tf_example.h"
#include "data/objects/copy_object.h"
#include "data/objects/object_stores.h"
#include "job/execution/plan.h"

namespace shoal::cli {
namespace {

struct DataArguments {
  std::vector<std::string> sources;  // of copy the last is its target
  std::string format;                // empty: by the first name
  uint64_t records = 10;
  double max_bad = 0;  // per cent
};

Result<std::vector<data::ObjectInfo>> ListAll(const DataArguments& arguments,
                                              data::ObjectStores* stores) {
  std::vector<data::ObjectInfo> found;
  for (const std::string& source : arguments.sources) {
    TRY_ASSIGN(const std::vector<data::ObjectInfo> some, stores->List(source));
    found.insert(found.end(), some.begin(), some.end());
  }
  return found;
}

int List(const Context& context, const DataArguments& arguments) {
  data::ObjectStores stores;
  const auto found = ListAll(arguments, &stores);
  if (!found.ok()) return PrintError(found.status());
  if (context.json) {
    std::string out;
    for (const data::ObjectInfo& one : *found)
      out += JsonLine({{"uri", EscapedUtf8(one.uri)},
                       {"bytes", one.bytes},
                       {"version", one.version},
                       {"modified", one.modified}});
    return PrintResult(out);
  }
  std::vector<std::vector<std::string>> rows = {{"BYTES", "MODIFIED", "OBJECT"}};
  uint64_t bytes = 0;
  for (const data::ObjectInfo& one : *found) {
    rows.push_back({std::to_string(one.bytes), one.modified.empty() ? "-" : one.modified,
                    EscapedUtf8(one.uri)});
    bytes += one.bytes;
  }
  std::string text = Table(rows);
  if (found->size() > 1)
    text += fmt::format("{} objects, {}\n", found->size(),
                        job::FormatBytes(static_cast<int64_t>(bytes)));
  return PrintResult(text);
}

struct OpenData {
  data::RecordFormat format = data::RecordFormat::kText;
  std::unique_ptr<data::RecordReader> reader;
  uint64_t stored_bytes = 0;
};

Result<OpenData> OpenRecords(const DataArguments& arguments) {
  OpenData open;
  TRY_ASSIGN(open.format, FormatOf(arguments.format, arguments.sources));
  TRY_ASSIGN(const data::Corpus corpus, OpenSources(arguments.sources, open.format));
  open.stored_bytes = corpus.stored_bytes();
  open.reader = std::make_unique<data::RecordReader>(
      corpus, open.format, data::RecordOptions{.max_bad = arguments.max_bad / 100});
  return open;
}

// A record as a line; TFRecords as the JSON of their example.
Result<std::string> ShownRecord(data::RecordFormat format, const data::Record& record) {
  if (format != data::RecordFormat::kTfRecord) return std::string(record.bytes) + "\n";
  TRY_ASSIGN(const data::TfExample example, data::DecodeTfExample(record.bytes));
  return ToText(data::ToJson(example)) + "\n";
}

int Head(const Context& context, const DataArguments& arguments) {
  const auto open = OpenRecords(arguments);
  if (!open.ok()) return PrintError(open.status());
  data::Record record;
  std::string out;
  for (uint64_t i = 0; i < arguments.records; ++i) {
    const auto more = open->reader->Next(&record);
    if (!more.ok()) return PrintError(more.status());
    if (!*more) break;
    const auto text = ShownRecord(open->format, record);
    if (!text.ok()) return PrintError(text.status());
    if (i == 0 && !context.json && !open->reader->columns().empty()) {
      const char* const separator = open->format == data::RecordFormat::kTsv ? "\t" : ",";
      out += fmt::format("{}\n", fmt::join(open->reader->columns(), separator));
    }
    out += context.json ? JsonLine({{"number", record.number},
                                    {"offset", record.offset},
                                    {"record", EscapedUtf8(text->substr(0, text->size() - 1))}})
                        : *text;
  }
  return PrintResult(out);
}

int Count(const Context& context, const DataArguments& arguments) {
  const auto open = OpenRecords(arguments);
  if (!open.ok()) return PrintError(open.status());
  data::RecordReader& reader = *open->reader;
  ProgressLine progress(context, "read");
  data::Record record;
  constexpr uint64_t kStep = 4096;
  for (uint64_t i = 0;; ++i) {
    const auto more = reader.Next(&record);
    if (!more.ok()) {
      progress.Erase();
      return PrintError(more.status());
    }
    if (!*more) break;
    if (i % kStep == 0) progress.Update(reader.bytes_read(), open->stored_bytes);
  }
  progress.Erase();
  for (const data::BadRecord& bad : reader.first_bad()) PrintNote("malformed: " + bad.text());
  if (context.json) {
    return PrintResult(JsonLine({{"records", reader.good()},
                                 {"malformed", reader.bad()},
                                 {"bytes", reader.bytes_read()},
                                 {"format", data::NameOf(open->format)}}));
  }
  std::string text = fmt::format("{} records, {}", reader.good(),
                                 job::FormatBytes(static_cast<int64_t>(reader.bytes_read())));
  if (reader.bad() > 0) text += fmt::format(", {} malformed", reader.bad());
  return PrintResult(text + "\n");
}

int ShowSchema(const Context& context, const DataArguments& arguments) {
  const auto open = OpenRecords(arguments);
  if (!open.ok()) return PrintError(open.status());
  const auto schema = data::InferSchema(open->reader.get(), open->format, arguments.records);
  if (!schema.ok()) return PrintError(schema.status());
  if (context.json) {
    std::string out;
    for (const data::SchemaColumn& column : schema->columns)
      out += JsonLine({{"name", column.name},
                       {"type", data::NameOf(column.type)},
                       {"missing", column.missing},
                       {"records", schema->records}});
    return PrintResult(out);
  }
  std::vector<std::vector<std::string>> rows = {{"COLUMN", "TYPE", "MISSING"}};
  for (const data::SchemaColumn& column : schema->columns)
    rows.push_back(
        {column.name, std::string(data::NameOf(column.type)), std::to_string(column.missing)});
  return PrintResult(Table(rows) + fmt::format("{}, the first {} records\n",
                                               data::NameOf(open->format), schema->records));
}

int Copy(const Context& context, const DataArguments& given) {
  DataArguments arguments = given;
  const std::string target = arguments.sources.back();
  arguments.sources.pop_back();
  data::ObjectStores stores;
  const auto copies = data::PlanCopies(&stores, arguments.sources, target);
  if (!copies.ok()) return PrintError(copies.status());
  uint64_t total = 0;
  uint64_t done = 0;
  for (const data::PlannedCopy& copy : *copies) total += copy.from.bytes;
  ProgressLine progress(context, "copied");
  for (const data::PlannedCopy& copy : *copies) {
    const auto copied = data::CopyObject(&stores, copy.from.uri, copy.to, [&](uint64_t bytes) {
      done += bytes;
      progress.Update(done, total);
    });
    if (!copied.ok()) {
      progress.Erase();
      return PrintError(copied.status());
    }
    if (!context.json) continue;
    const Status printed = PrintOut(JsonLine({{"from", EscapedUtf8(copy.from.uri)},
                                              {"to", EscapedUtf8(copied->uri)},
                                              {"bytes", copied->bytes},
                                              {"version", copied->version}}));
    if (!printed.ok()) return PrintError(printed);
  }
  progress.Erase();
  if (context.json) return 0;
  return PrintConfirmation(fmt::format("copied {} object{}, {}\n", copies->size(),
                                       copies->size() == 1 ? "" : "s",
                                       job::FormatBytes(static_cast<int64_t>(total))));
}

using DataAction = int (*)(const Context&, const DataArguments&);

struct DataActionText {
  std::string name;
  std::string doc;
  std::string example;  // after "shoal data "
};

std::shared_ptr<DataArguments> AddDataAction(CLI::App* parent, const DataActionText& text,
                                             DataAction action, Run* chosen) {
  auto arguments = std::make_shared<DataArguments>();
  CLI::App* sub = parent->add_subcommand(text.name, text.doc);
  sub->footer("Examples:\n  shoal data " + text.example);
  const bool copies = action == &Copy;
  CLI::Option* const names = sub->add_option(
      copies ? "FROM… TO" : "URI", arguments->sources,
      copies ? "Sources as of ls, and at the end a path or URI; a folder if it ends with '/'"
             : "Paths, URIs, patterns, or folders ending with '/'");
  names->required();
  if (copies) names->expected(2, CLI::detail::expected_max_vector_size);
  if (action == &Head || action == &Count || action == &ShowSchema) {
    sub->add_option("--format", arguments->format, kFormatHelp)->type_name("FORMAT");
    AddMaxBadOption(sub, &arguments->max_bad);
  }
  if (action == &Head || action == &ShowSchema)
    sub->add_option("-n,--records", arguments->records,
                    action == &Head ? "Records to print [10]" : "Records to look at [1000]")
        ->type_name("N");
  sub->fallthrough();  // --json is the parent's
  sub->callback([arguments, action, chosen] {
    *chosen = [arguments, action](const Context& context) { return action(context, *arguments); };
  });
  return arguments;
}

constexpr const char* kDataFooter = R"help(Examples:
  shoal data ls 's3://bucket/news/part-*.txt'
  shoal data schema s3://bucket/people.csv
  shoal data head -n 3 events.jsonl
  shoal data count --max-bad 0.1 events.jsonl
  shoal data copy s3://bucket/news/ news/
  shoal data convert people.parquet people.csv
  shoal data split --parts 8 people.csv parts/
  shoal data read --part 0/4 people.csv

Sources are local paths, http:// and https:// URLs, s3://BUCKET/KEY and webhdfs://HOST:PORT/PATH;
credentials come from the environment or the profile files of the AWS tools (docs/data.md).)help";

}  // namespace

void AddData(CLI::App& app, Run* chosen) {
  CLI::App* sub =
      app.add_subcommand("data", "Look at data wherever it is, copy, convert and split it");
  AddDataAction(sub, {"ls", "List objects with their lengths", "ls 's3://bucket/news/part-*.txt'"},
                &List, chosen);
  AddDataAction(sub,
                {"schema", "Infer the columns and their types", "schema s3://bucket/people.csv"},
                &ShowSchema, chosen)
      ->records = 1000;
  AddDataAction(sub, {"head", "Print the first records", "head -n 3 events.jsonl"}, &Head, chosen);
  AddDataAction(sub,
                {"count", "Count the records, and those that are malformed",
                 "count --max-bad 0.1 events.jsonl"},
                &Count, chosen);
  AddDataAction(sub, {"copy", "Copy objects", "copy s3://bucket/news/ news/"}, &Copy, chosen);
  AddDataConvert(sub, chosen);
  AddDataSplit(sub, chosen);
  AddDataRead(sub, chosen);
  sub->add_flag("--json")->description("Print JSON, one object per line");
  sub->require_subcommand(1);
  sub->footer(kDataFooter);
}

}  // namespace shoal::cli
