#include "learn/sparse/params.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace shoal::learn::sparse {

Loss LossFor(const CommonParams& params) {
  const Result<LossKind> kind = LossKindOf(params.loss);
  return {kind.ok() ? *kind : LossKind::kLogistic, static_cast<float>(params.quantile)};
}

Result<data::ExampleFormat> FormatOf(std::string_view name) {
  if (name == "libsvm") return data::ExampleFormat::kLibsvm;
  if (name == "libffm") return data::ExampleFormat::kLibffm;
  if (name == "csv") return data::ExampleFormat::kCsv;
  if (name == "tsv") return data::ExampleFormat::kTsv;
  if (name == "jsonl" || name == "json") return data::ExampleFormat::kJsonLines;
  if (name == "tfrecord") return data::ExampleFormat::kTfRecord;
  if (name == "parquet") return data::ExampleFormat::kParquet;
  return InvalidArgument(fmt::format("got {}, expected one of {}", name, kFormats));
}

Result<data::Corpus> OpenExamples(const std::vector<std::string>& files,
                                  data::ExampleFormat format) {
  return data::Corpus::Open(files, data::ObjectContext(), data::ContentOf(format));
}

std::string_view NameOf(data::ExampleFormat format) {
  switch (format) {
    case data::ExampleFormat::kLibsvm:
      return "libsvm";
    case data::ExampleFormat::kLibffm:
      return "libffm";
    case data::ExampleFormat::kCsv:
      return "csv";
    case data::ExampleFormat::kTsv:
      return "tsv";
    case data::ExampleFormat::kJsonLines:
      return "jsonl";
    case data::ExampleFormat::kTfRecord:
      return "tfrecord";
    case data::ExampleFormat::kParquet:
      return "parquet";
  }
  return "";
}

char DelimiterOf(std::string_view name) {
  if (name == "tab") return '\t';
  if (name == "semicolon") return ';';
  return name == "bar" ? '|' : ',';
}

Result<Normalization> NormalizationOf(std::string_view normalize, data::ExampleFormat format) {
  const bool table = data::IsTable(format);
  if (normalize == "auto") return table ? Normalization::kColumns : Normalization::kRows;
  if (normalize == "rows" || normalize == "true") return Normalization::kRows;
  if (normalize == "none" || normalize == "false") return Normalization::kNone;
  if (table) return Normalization::kColumns;
  return InvalidArgument(
      fmt::format("normalize: got columns, which tables have and {} has not; expected rows or none",
                  NameOf(format)));
}

int64_t EpochsFor(uint64_t examples, Normalization normalization) {
  constexpr uint64_t kSteps = 200'000;
  if (normalization != Normalization::kColumns || examples == 0) return 2;
  return static_cast<int64_t>(std::clamp<uint64_t>((kSteps + examples - 1) / examples, 2, 30));
}

Result<std::pair<double, double>> FoldRange(std::string_view fold) {
  constexpr int kMostFolds = 100;
  if (fold.empty()) return std::pair(0.0, 0.0);
  const size_t slash = std::min(fold.find('/'), fold.size());
  int number = 0, folds = 0;
  const char* const end = fold.data() + fold.size();
  const auto first = std::from_chars(fold.data(), fold.data() + slash, number);
  const auto second = std::from_chars(std::min(fold.data() + slash + 1, end), end, folds);
  const bool read = first.ec == std::errc() && first.ptr == fold.data() + slash &&
                    second.ec == std::errc() && second.ptr == end;
  if (!read || folds < 2 || folds > kMostFolds || number < 1 || number > folds) {
    return InvalidArgument(
        fmt::format("fold: got {}, expected I/K, the I-th of K parts, such as 2/5; K is 2 to {}",
                    fold, kMostFolds));
  }
  return std::pair(static_cast<double>(number - 1) / folds, static_cast<double>(number) / folds);
}

Result<double> ValidationShare(std::string_view validation) {
  if (validation.empty()) return 0;
  double percent = 0;
  const bool number = validation.ends_with('%') &&
                      data::ParseWideNumber(validation.substr(0, validation.size() - 1), &percent);
  if (number && percent > 0 && percent <= 50) return percent / 100;
  return InvalidArgument(fmt::format(
      "validation: got {}, expected a share of the data above 0% and up to 50%, such as 10%",
      validation));
}

Result<double> MaxBadOf(std::string_view share) {
  if (share.empty()) return 0;
  double percent = 0;
  const bool number =
      share.ends_with('%') && data::ParseWideNumber(share.substr(0, share.size() - 1), &percent);
  if (number && percent >= 0 && percent <= 100) return percent / 100;
  return InvalidArgument(fmt::format(
      "max_bad: got {}, expected a share of the rows from 0% to 100%, such as 0.1%", share));
}

Result<data::ExampleOptions> BareOptionsOf(const CommonParams& params, data::ExampleFormat format,
                                           bool training) {
  data::ExampleOptions options;
  options.hash_bits = static_cast<int>(params.hash_bits);
  const Loss loss = LossFor(params);
  const bool binary = loss.kind == LossKind::kLogistic || loss.kind == LossKind::kHinge;
  options.binary_labels = training && binary;
  options.real_labels = loss.predicts_numbers();
  if (training && loss.kind == LossKind::kPoisson) options.least_label = 0;
  if (loss.kind == LossKind::kSoftmax) options.max_classes = data::kMaxClasses;
  options.missing_labels = !training;
  options.format = format;
  TRY_ASSIGN(options.max_bad, MaxBadOf(params.max_bad));
  options.keep_fields = params.keep_fields;
  options.fields = static_cast<uint32_t>(params.fields);
  if (params.keep_fields && format == data::ExampleFormat::kLibsvm) {
    return InvalidArgument(
        "data format: got libsvm, whose features have no fields; expected libffm or a table such "
        "as csv (where a column is a field)");
  }
  if (!data::IsTable(format)) {
    for (const auto& [name, column] : {std::pair{"weight", params.weight}, {"key", params.key}}) {
      if (column.empty()) continue;
      return InvalidArgument(fmt::format("{}: got {}, expected none: {} has no columns; csv has",
                                         name, column, NameOf(format)));
    }
    return options;
  }
  if (options.hash_bits == 0) options.hash_bits = static_cast<int>(kCsvHashBits);
  options.raw_labels = training && !params.trained && !loss.predicts_numbers();
  return options;
}

data::CsvOptions CsvOptionsOf(const CommonParams& params, bool training) {
  data::CsvOptions csv;
  csv.label = params.label;
  csv.categorical = params.categorical;
  csv.delimiter = DelimiterOf(params.delimiter);
  csv.header = params.header == "yes"  ? data::CsvHeader::kYes
               : params.header == "no" ? data::CsvHeader::kNo
                                       : data::CsvHeader::kAuto;
  csv.label_needed = training;
  csv.weight = params.weight;
  csv.key = params.key;
  csv.keep_weights = params.continues;
  csv.keep_keys = !training && !params.key.empty();
  csv.trained = params.trained;
  return csv;
}

Result<data::ExampleOptions> OptionsOf(const CommonParams& params, data::ExampleFormat format,
                                       const data::Corpus& corpus, bool training) {
  TRY_ASSIGN(data::ExampleOptions options, BareOptionsOf(params, format, training));
  TRY_ASSIGN(const Normalization normalization, NormalizationOf(params.normalize, format));
  if (!data::IsTable(format)) return options;
  TRY_ASSIGN(options.csv, data::FindColumns(format, corpus, CsvOptionsOf(params, training)));
  options.raw_columns = normalization == Normalization::kColumns && !options.csv->scaled;
  return options;
}

}  // namespace shoal::learn::sparse
