// Parquet files from any bytes: rows or an error.
#include <string_view>

#include "data/formats/record_reader.h"
#include "examples_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shoal;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto corpus = fuzz::CorpusOf(bytes, data::Content::kBytes);
  if (!corpus.ok()) return 0;
  data::RecordReader reader(*corpus, data::RecordFormat::kParquet);
  data::Record record;
  for (int i = 0; i < 10'000; ++i) {
    const auto more = reader.Next(&record);
    if (!more.ok() || !*more) break;
  }
  return 0;
}
