// Examples from CSV and libffm text, whose shards must give the examples of the whole, and the
// bytes of a factorization machine. The first byte of an input says which.
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "data/csv.h"
#include "data/examples.h"
#include "model/factors.h"

namespace {

using namespace shoal;

void Require(bool condition) {
  if (!condition) std::abort();
}

// Label, features and values one after another. False for text that is refused.
bool ReadPart(const data::Corpus& corpus, uint64_t index, uint64_t count,
              const data::ExampleOptions& options, std::vector<double>* flat) {
  const auto shard = corpus.Cut(index, count);
  if (!shard.ok()) return false;
  const auto set = data::ReadExamples(corpus, *shard, options);
  if (!set.ok()) return false;
  for (size_t i = 0; i < set->size(); ++i) {
    flat->push_back(static_cast<double>(set->labels[i]));
    const auto features = set->FeaturesOf(i);
    for (size_t k = 0; k < features.size(); ++k) {
      Require(k == 0 || features[k - 1] < features[k]);
      Require(features[k] < set->feature_end);
      flat->push_back(features[k]);
      flat->push_back(set->ValuesOf(i) == nullptr ? 1.0 : static_cast<double>(set->ValuesOf(i)[k]));
    }
  }
  return true;
}

void TryText(std::string_view bytes, int kind) {
  static const int file = ::memfd_create("examples", MFD_CLOEXEC);
  Require(::ftruncate(file, 0) == 0 && WriteAllAt(file, bytes, 0).ok());
  const auto corpus = data::Corpus::Open({"/proc/self/fd/" + std::to_string(file)});
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
  std::vector<double> whole, parts;
  if (!ReadPart(*corpus, 0, 1, options, &whole)) return;
  for (uint64_t i = 0; i < 5; ++i) Require(ReadPart(*corpus, i, 5, options, &parts));
  Require(whole.size() == parts.size());
  for (size_t i = 0; i < whole.size(); ++i)
    Require(whole[i] == parts[i] || (std::isnan(whole[i]) && std::isnan(parts[i])));
}

void TryModel(std::string_view bytes) {
  std::string fixed(bytes);
  if (fixed.size() >= 4) {
    const uint32_t sum = Crc32c(fixed.data(), fixed.size() - 4);
    std::memcpy(fixed.data() + fixed.size() - 4, &sum, 4);
  }
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
