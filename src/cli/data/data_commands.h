// What the files of `shoal data` share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "cli/command.h"
#include "data/corpus/corpus.h"
#include "data/datasets/column_batch.h"
#include "data/formats/record_reader.h"

namespace shoal::cli {

// One line on a terminal that tells how far a long command is.
class ProgressLine {
 public:
  ProgressLine(const Context& context, std::string verb)
      : shown_(context.stderr_is_terminal && !context.json), verb_(std::move(verb)) {}
  ~ProgressLine() { Erase(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // `total` 0: unknown.
  void Update(uint64_t bytes, uint64_t total);
  void Erase();

 private:
  const bool shown_;
  const std::string verb_;
  const TimePoint begin_ = RealClock::Get()->Now();
  TimePoint last_ = begin_;
  bool drawn_ = false;
};

// --max-bad PERCENT.
void AddMaxBadOption(CLI::App* sub, double* percent);

// "text, csv, …" of --format, for help.
inline constexpr const char* kFormatHelp =
    "text, csv, tsv, libsvm, libffm, jsonl, tfrecord or parquet [by the first name's ending]";

// The named format, or that of the first source's name.
Result<data::RecordFormat> FormatOf(const std::string& format,
                                    const std::vector<std::string>& sources);
// All objects that the sources name: paths, URIs, patterns, folders.
Result<data::Corpus> OpenSources(const std::vector<std::string>& sources,
                                 data::RecordFormat format);

// Differs when the files are others, or files of this machine were written since.
std::string VersionOf(const data::Corpus& corpus);
// InvalidArgument if one of the names is none of the columns.
Status CheckNamed(const std::vector<data::BatchColumn>& columns,
                  const std::vector<std::string>& names);

// Subcommands of `shoal data`.
void AddDataRead(CLI::App* data, Run* chosen);
void AddDataConvert(CLI::App* data, Run* chosen);
void AddDataSplit(CLI::App* data, Run* chosen);

}  // namespace shoal::cli
