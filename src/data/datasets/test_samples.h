// For tests: small datasets in each format, and their rows.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/corpus/corpus.h"
#include "data/datasets/row_reader.h"
#include "data/datasets/row_writer.h"
#include "data/formats/tf_example.h"
#include "data/formats/tfrecord.h"
#include "data/parquet/test_parquet.h"
#include "data/text/test_text.h"

namespace shoal::data {

inline constexpr int kRecords = 57;

// A dataset of kRecords records in two files, of unequal lengths.
struct Sample {
  RecordFormat format;
  std::vector<std::string> files;
};

inline std::string LineOf(RecordFormat format, int i) {
  const std::string pad(static_cast<size_t>(i * 7 % 31), 'x');
  switch (format) {
    case RecordFormat::kCsv:
      return std::to_string(i) + ",\"" + pad + ", \"\n";
    case RecordFormat::kTsv:
      return std::to_string(i) + "\tq" + pad + "\n";
    case RecordFormat::kJsonLines:
      return "{\"id\":" + std::to_string(i) + ",\"pad\":\"" + pad + "\"}\r\n";
    case RecordFormat::kLibsvm:
      return "+1 " + std::to_string(i + 1) + ":0.5 99:2\n";
    case RecordFormat::kTfRecord: {
      std::string record;
      AppendTfRecord(EncodeTfExample(
                         {{"id", std::vector<int64_t>{i}}, {"pad", std::vector<std::string>{pad}}}),
                     &record);
      return record;
    }
    default:
      return "line " + std::to_string(i) + pad + "\n";
  }
}

inline std::vector<Sample> Samples() {
  std::vector<Sample> samples;
  for (const RecordFormat format :
       {RecordFormat::kCsv, RecordFormat::kTsv, RecordFormat::kJsonLines, RecordFormat::kLibsvm,
        RecordFormat::kTfRecord, RecordFormat::kText}) {
    Sample sample{format, {"", ""}};
    for (std::string& file : sample.files) {
      if (format == RecordFormat::kCsv) file = "id,pad\n";
      if (format == RecordFormat::kTsv) file = "id\tpad\n";
    }
    for (int i = 0; i < kRecords; ++i) sample.files[i < 40 ? 0 : 1] += LineOf(format, i);
    samples.push_back(sample);
    sample.files[0] = Gzip(sample.files[0]);
    samples.push_back(sample);
  }
  samples.push_back(
      {RecordFormat::kParquet, {BytesOfHex(kParquetVersion1), BytesOfHex(kParquetVersion2)}});
  return samples;
}

inline Result<Corpus> OpenAs(const TextFiles& files, RecordFormat format) {
  return Corpus::Open(files.paths(), ObjectContext(), ContentOf(format));
}

// All rows from a position on, as JSON; the reader stays open.
inline Result<std::vector<std::string>> RowsOf(RowReader* reader, uint64_t most = UINT64_MAX) {
  TRY_ASSIGN(const auto writer, RowWriter::Make(RecordFormat::kJsonLines, {}));
  std::vector<std::string> rows;
  while (rows.size() < most) {
    TRY_ASSIGN(const bool more, reader->NextRow(writer.get()));
    if (!more) break;
    rows.push_back(*writer->text());
    writer->text()->clear();
  }
  return rows;
}

inline Result<std::vector<std::string>> RowsOf(const Corpus& corpus, RecordFormat format,
                                               RowOptions options) {
  TRY_ASSIGN(const auto reader, RowReader::Open(corpus, format, std::move(options)));
  return RowsOf(reader.get());
}

}  // namespace shoal::data
