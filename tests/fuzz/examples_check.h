// What must hold of examples read from any bytes, whatever their format.
#pragma once

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
#include "data/examples/examples.h"

namespace shoal::fuzz {

inline void Require(bool condition) {
  if (!condition) std::abort();
}

// The bytes as a file. Valid until the next call.
inline Result<data::Corpus> CorpusOf(std::string_view bytes,
                                     data::Content content = data::Content::kText) {
  static const int file = ::memfd_create("examples", MFD_CLOEXEC);
  Require(::ftruncate(file, 0) == 0 && WriteAllAt(file, bytes, 0).ok());
  return data::Corpus::Open({"/proc/self/fd/" + std::to_string(file)}, data::ObjectContext(),
                            content);
}

// Label, features and values one after another. False for text that is refused.
inline bool ReadPart(const data::Corpus& corpus, uint64_t index, uint64_t count,
                     const data::ExampleOptions& options, std::vector<double>* flat) {
  const auto shard = corpus.MakeShard(index, count);
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
      if (options.keep_fields) {
        Require(set->FieldsOf(i)[k] < set->field_end);
        flat->push_back(set->FieldsOf(i)[k]);
      }
      flat->push_back(set->ValuesOf(i) == nullptr ? 1.0 : static_cast<double>(set->ValuesOf(i)[k]));
    }
  }
  return true;
}

// Five shards give the examples of the whole.
inline void CheckShards(const data::Corpus& corpus, const data::ExampleOptions& options) {
  std::vector<double> whole, parts;
  if (!ReadPart(corpus, 0, 1, options, &whole)) return;
  for (uint64_t i = 0; i < 5; ++i) Require(ReadPart(corpus, i, 5, options, &parts));
  Require(whole.size() == parts.size());
  for (size_t i = 0; i < whole.size(); ++i)
    Require(whole[i] == parts[i] || (std::isnan(whole[i]) && std::isnan(parts[i])));
}

// With a right checksum behind them, bytes reach the decoder behind the check.
inline std::string WithChecksum(std::string_view bytes) {
  std::string fixed(bytes);
  if (fixed.size() < 4) return fixed;
  const uint32_t sum = Crc32c(fixed.data(), fixed.size() - 4);
  std::memcpy(fixed.data() + fixed.size() - 4, &sum, 4);
  return fixed;
}

}  // namespace shoal::fuzz
