// Examples from libsvm text in any packing, whose shards must give the examples of the whole, and
// the bytes of a linear model. The first byte of an input says which.
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
#include "data/examples.h"
#include "model/linear.h"

namespace {

using namespace shoal;

void Require(bool condition) {
  if (!condition) std::abort();
}

// Label, features and values one after another. False for text that is refused.
bool ReadPart(const data::Corpus& corpus, uint64_t index, uint64_t count, int hash_bits,
              std::vector<double>* flat) {
  const auto shard = corpus.Cut(index, count);
  if (!shard.ok()) return false;
  const auto set = data::ReadExamples(corpus, *shard, {hash_bits, hash_bits % 2 == 0});
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

void TryText(std::string_view bytes, int hash_bits) {
  static const int file = ::memfd_create("examples", MFD_CLOEXEC);
  Require(::ftruncate(file, 0) == 0 && WriteAllAt(file, bytes, 0).ok());
  const auto corpus = data::Corpus::Open({"/proc/self/fd/" + std::to_string(file)});
  if (!corpus.ok()) return;
  std::vector<double> whole, parts;
  if (!ReadPart(*corpus, 0, 1, hash_bits, &whole)) return;
  for (uint64_t i = 0; i < 5; ++i) Require(ReadPart(*corpus, i, 5, hash_bits, &parts));
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
  const auto model = model::DecodeLinearModel(fixed);
  if (!model.ok()) return;
  const auto again = model::DecodeLinearModel(model::EncodeLinearModel(*model));
  Require(again.ok() && again->weights == model->weights);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const int kind = data[0] % 4;
  if (kind == 3) {
    TryModel(rest);
  } else {
    TryText(rest, kind == 0 ? 0 : kind == 1 ? 5 : 20);
  }
  return 0;
}
