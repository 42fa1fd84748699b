#include "data/examples/examples.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "data/examples/example_parser.h"
#include "data/examples/example_source.h"

namespace shoal::data {
namespace {

constexpr uint64_t kEnoughToJudge = 10'000;  // rows, before a share of them ends a shard
constexpr double kAllAreFine = 2;  // max_bad of a visit, which only looks: nothing is told

bool EndsWord(char c) { return IsBlank(c) || c == '\n' || c == '#'; }

std::unique_ptr<ExampleSource> MakeSource(const Corpus& corpus, Shard shard,
                                          const ExampleOptions& options) {
  if (options.format == ExampleFormat::kTfRecord)
    return MakeTfRecordSource(corpus, std::move(shard), options);
  if (options.format == ExampleFormat::kParquet)
    return MakeParquetSource(corpus, std::move(shard), options);
  return MakeLineSource(corpus, std::move(shard), options);
}

// Gives rows to a function.
class VisitingSink final : public RowSink {
 public:
  explicit VisitingSink(const std::function<bool(const TableRow&)>& visit) : visit_(visit) {}
  RowFault Take(const TableRow& row) override {
    done = done || !visit_(row);
    return {};
  }
  bool done = false;

 private:
  const std::function<bool(const TableRow&)>& visit_;
};

}  // namespace

std::string FirstWordOf(std::string_view text) {
  const auto end = std::find_if(text.begin(), text.end(), EndsWord);
  const size_t size = static_cast<size_t>(end - text.begin());
  std::string word(text.substr(0, std::min<size_t>(size, 40)));
  for (char& c : word) {
    if (static_cast<uint8_t>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return size > 40 ? word + "…" : word;
}

Status BadRows::Check() const {
  if (static_cast<double>(bad_) <= max_bad_ * static_cast<double>(good_ + bad_))
    return Status::Ok();
  return InvalidArgument(
      fmt::format("{} of {} rows of a part of the data are malformed, more than "
                  "max_bad: the first is {}",
                  bad_, good_ + bad_, first_.front().text()));
}

Status BadRows::Count(BadRecord bad) {
  ++bad_;
  if (first_.size() < kKeptBadRecords) first_.push_back(std::move(bad));
  return good_ + bad_ < kEnoughToJudge ? Status::Ok() : Check();
}

Status BadRows::Finish() const {
  if (bad_ == 0 || max_bad_ >= kAllAreFine) return Status::Ok();
  TRY(Check());
  std::string places;
  for (const BadRecord& one : first_) places += "\n  " + one.text();
  LogWarning("{} of {} rows are malformed and left out, the first:{}", bad_, good_ + bad_, places);
  return Status::Ok();
}

void ExampleSet::Clear() {
  labels.clear();
  starts.clear();
  starts.Push(0);
  features.clear();
  values.clear();
  fields.clear();
  weights.clear();
  keys.clear();
  feature_end = 0;
  field_end = 0;
}

struct ExampleReader::State {
  const Corpus corpus;
  const ExampleOptions options;
  std::unique_ptr<ExampleSource> source;
};

ExampleReader::ExampleReader(const Corpus& corpus, Shard shard, ExampleOptions options)
    : state_(std::make_unique<State>(State{corpus, std::move(options), nullptr})) {
  state_->source = MakeSource(corpus, std::move(shard), state_->options);
}
ExampleReader::ExampleReader(ExampleReader&&) noexcept = default;
ExampleReader::~ExampleReader() = default;

Result<bool> ExampleReader::Read(ExampleSet* set) {
  try {
    std::unique_ptr<RowSink> sink;
    if (IsTable(state_->options.format)) sink = MakeExampleSink(state_->options, set);
    return state_->source->Read({set, sink.get()});
  } catch (const std::bad_alloc&) {
    return ResourceExhausted(
        fmt::format("the examples of {} do not fit into memory after {} MiB of text",
                    state_->corpus.files().front().path.string(), bytes_read() >> 20));
  }
}

uint64_t ExampleReader::bytes_read() const { return state_->source->bytes_read(); }

Result<ExampleSet> ReadExamples(const Corpus& corpus, const Shard& shard, ExampleOptions options) {
  ExampleReader reader(corpus, shard, std::move(options));
  ExampleSet set;
  for (;;) {
    TRY_ASSIGN(const bool more, reader.Read(&set));
    if (!more) return set;
  }
}

Status VisitRows(const Corpus& corpus, const ExampleOptions& options, uint64_t bytes,
                 const std::function<bool(const TableRow&)>& visit) {
  TRY_ASSIGN(Shard shard, corpus.MakeShard(0, 1));
  ExampleOptions looking = options;
  if (looking.max_bad > 0) looking.max_bad = kAllAreFine;
  const std::unique_ptr<ExampleSource> source = MakeSource(corpus, std::move(shard), looking);
  VisitingSink sink(visit);
  while (!sink.done && source->bytes_read() < bytes) {
    TRY_ASSIGN(const bool more, source->Read({nullptr, &sink}));
    if (!more) break;
  }
  return Status::Ok();
}

}  // namespace shoal::data
