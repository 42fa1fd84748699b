#include "learn/sparse/objective/label_guess.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "data/corpus/corpus.h"
#include "data/examples/classes.h"
#include "data/examples/csv.h"
#include "data/examples/table.h"

namespace shoal::learn::sparse {
namespace {

constexpr size_t kGuessBytes = 1u << 20;
constexpr size_t kMostGuessedClasses = 20;  // of whole numbers
constexpr size_t kEnoughLabels = 1000;      // different ones

// The first bytes of a file, without the line that they cut.
Result<std::string> ReadHead(const data::Corpus& corpus) {
  TRY_ASSIGN(const auto stream, data::TextStream::Open(corpus.files().front()));
  std::string text(kGuessBytes, '\0');
  size_t size = 0;
  while (size < text.size()) {
    TRY_ASSIGN(const size_t got, stream->Read(text.data() + size, text.size() - size));
    if (got == 0) break;
    size += got;
  }
  text.resize(size);
  if (size == kGuessBytes && text.find('\n') != text.npos) text.resize(text.rfind('\n'));
  return text;
}

std::vector<std::string> LabelsOf(std::string_view text) {
  std::set<std::string> labels;
  while (!text.empty() && labels.size() < kEnoughLabels) {
    const size_t newline = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, newline);
    text.remove_prefix(std::min(newline + 1, text.size()));
    while (line.ends_with('\r')) line.remove_suffix(1);
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == line.npos || line[begin] == '#') continue;
    line.remove_prefix(begin);
    labels.insert(data::ClassName(line.substr(0, line.find_first_of(" \t#"))));
  }
  return {labels.begin(), labels.end()};
}

// Of a table. Malformed rows are left to the training.
Result<std::vector<std::string>> LabelsOf(const data::Corpus& corpus,
                                          const data::ExampleOptions& options) {
  std::set<std::string> labels;
  std::string room;
  data::ExampleOptions tolerant = options;
  tolerant.max_bad = 1;
  const auto visit = [&](const data::TableRow& row) {
    labels.insert(data::ClassName(data::TextOf(row.cells[options.csv->label], &room)));
    return labels.size() < kEnoughLabels;
  };
  TRY(data::VisitRows(corpus, tolerant, kGuessBytes, visit));
  return std::vector<std::string>(labels.begin(), labels.end());
}

}  // namespace

LossKind GuessLossOf(const std::vector<std::string>& labels) {
  bool whole = true, numbers = true;
  for (const std::string& label : labels) {
    double value = 0;
    const bool number = data::ParseWideNumber(label, &value) && std::isfinite(value);
    numbers = numbers && (number || data::IsMissingCell(label));
    whole = whole && number && std::floor(value) == value;
  }
  const bool own = std::all_of(labels.begin(), labels.end(), [](const std::string& label) {
    return label == "-1" || label == "0" || label == "1";
  });
  if (labels.size() <= 2 || own) return LossKind::kLogistic;
  if (numbers && !(whole && labels.size() <= kMostGuessedClasses)) return LossKind::kSquared;
  return LossKind::kSoftmax;
}

Status ResolveLoss(data::ExampleFormat format, const std::vector<std::string>& files,
                   CommonParams* params) {
  if (params->loss != "auto" || files.empty()) return Status::Ok();
  TRY_ASSIGN(const data::Corpus corpus, OpenExamples(files, format));
  CommonParams reading = *params;
  reading.loss = NameOf(LossKind::kSoftmax);
  TRY_ASSIGN(const data::ExampleOptions options, OptionsOf(reading, format, corpus, true));
  if (options.csv != nullptr) {
    TRY_ASSIGN(const std::vector<std::string> labels, LabelsOf(corpus, options));
    params->loss = NameOf(GuessLossOf(labels));
    return Status::Ok();
  }
  TRY_ASSIGN(const std::string text, ReadHead(corpus));
  params->loss = NameOf(GuessLossOf(LabelsOf(text)));
  return Status::Ok();
}

}  // namespace shoal::learn::sparse
