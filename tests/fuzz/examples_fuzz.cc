// Examples from libsvm text in any packing, whose shards must give the examples of the whole, and
// the bytes of a linear model. The first byte of an input says which.
#include <string>
#include <string_view>

#include "examples_check.h"
#include "model/linear_model.h"

namespace {

using namespace shoal;
using fuzz::Require;

void TryText(std::string_view bytes, int hash_bits) {
  const auto corpus = fuzz::CorpusOf(bytes);
  if (!corpus.ok()) return;
  fuzz::CheckShards(*corpus, {hash_bits, hash_bits % 2 == 0});
}

void TryModel(std::string_view bytes) {
  const std::string fixed = fuzz::WithChecksum(bytes);
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
