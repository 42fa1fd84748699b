// Examples from CSV and libffm text, whose shards must give the examples of the whole, and the
// bytes of a factorization machine. The first byte of an input says which.
#include <string>
#include <string_view>

#include "data/examples/csv.h"
#include "examples_check.h"
#include "model/factor_model.h"

namespace {

using namespace shoal;
using fuzz::Require;

void TryText(std::string_view bytes, int kind) {
  const auto corpus = fuzz::CorpusOf(bytes);
  if (!corpus.ok()) return;
  data::ExampleOptions options;
  options.binary_labels = kind % 2 == 0;
  options.format = data::ExampleFormat::kLibffm;
  if (kind < 2) {
    options.format = data::ExampleFormat::kCsv;
    options.hash_bits = 12;
    data::CsvOptions csv;
    csv.label_needed = kind == 0;
    csv.label = kind == 0 ? "" : "label";
    const auto columns = data::CsvColumns::Make(*corpus, csv);
    if (!columns.ok()) return;
    options.csv = *columns;
  }
  fuzz::CheckShards(*corpus, options);
  options.keep_fields = true;
  options.fields = 7;
  fuzz::CheckShards(*corpus, options);
}

void TryModel(std::string_view bytes) {
  const std::string fixed = fuzz::WithChecksum(bytes);
  model::FactorModel model;
  model.linear.weights.resize(50);
  if (!model::DecodeFactors(fixed, &model).ok()) return;
  model::FactorModel again;
  again.linear = model.linear;
  Require(model::DecodeFactors(model::EncodeFactors(model), &again).ok() && again.v == model.v);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const int kind = data[0] % 4;
  if (kind == 3) {
    TryModel(rest);
  } else {
    TryText(rest, kind);
  }
  return 0;
}
