#include "learn/sparse/params.h"

#include <fmt/format.h>

#include <algorithm>

namespace shoal::learn::sparse {

Result<data::ExampleFormat> FormatOf(std::string_view name) {
  if (name == "libsvm") return data::ExampleFormat::kLibsvm;
  if (name == "libffm") return data::ExampleFormat::kLibffm;
  if (name == "csv") return data::ExampleFormat::kCsv;
  return InvalidArgument(fmt::format("got {}, expected libsvm, libffm or csv", name));
}

std::string_view NameOf(data::ExampleFormat format) {
  switch (format) {
    case data::ExampleFormat::kLibsvm:
      return "libsvm";
    case data::ExampleFormat::kLibffm:
      return "libffm";
    case data::ExampleFormat::kCsv:
      return "csv";
  }
  return "";
}

char DelimiterOf(std::string_view name) {
  if (name == "tab") return '\t';
  if (name == "semicolon") return ';';
  return name == "bar" ? '|' : ',';
}

Result<Normalization> NormalizationOf(std::string_view normalize, data::ExampleFormat format) {
  const bool csv = format == data::ExampleFormat::kCsv;
  if (normalize == "auto") return csv ? Normalization::kColumns : Normalization::kRows;
  if (normalize == "rows" || normalize == "true") return Normalization::kRows;
  if (normalize == "none" || normalize == "false") return Normalization::kNone;
  if (csv) return Normalization::kColumns;
  return InvalidArgument(
      fmt::format("normalize: got columns, which csv has and {} has not; expected rows or none",
                  NameOf(format)));
}

int64_t EpochsFor(uint64_t examples, Normalization normalization) {
  constexpr uint64_t kSteps = 200'000;
  if (normalization != Normalization::kColumns || examples == 0) return 2;
  return static_cast<int64_t>(std::clamp<uint64_t>((kSteps + examples - 1) / examples, 2, 30));
}

Result<data::ExampleOptions> OptionsOf(const CommonParams& params, data::ExampleFormat format,
                                       const data::Corpus& corpus, bool binary_labels) {
  data::ExampleOptions options;
  options.hash_bits = static_cast<int>(params.hash_bits);
  options.binary_labels = binary_labels;
  options.format = format;
  options.keep_fields = params.keep_fields;
  options.fields = static_cast<uint32_t>(params.fields);
  if (params.keep_fields && format == data::ExampleFormat::kLibsvm) {
    return InvalidArgument(
        "data format: got libsvm, whose features have no fields; expected libffm or csv (where a "
        "column is a field)");
  }
  TRY_ASSIGN(const Normalization normalization, NormalizationOf(params.normalize, format));
  if (format != data::ExampleFormat::kCsv) return options;
  if (options.hash_bits == 0) options.hash_bits = static_cast<int>(kCsvHashBits);
  data::CsvOptions csv;
  csv.label = params.label;
  csv.categorical = params.categorical;
  csv.delimiter = DelimiterOf(params.delimiter);
  csv.header = params.header == "yes"  ? data::CsvHeader::kYes
               : params.header == "no" ? data::CsvHeader::kNo
                                       : data::CsvHeader::kAuto;
  csv.label_needed = binary_labels;
  csv.trained = params.trained;
  TRY_ASSIGN(options.csv, data::CsvColumns::Make(corpus, csv));
  options.raw_labels = binary_labels && !params.trained;
  options.raw_columns = normalization == Normalization::kColumns && !options.csv->scaled;
  return options;
}

}  // namespace shoal::learn::sparse
