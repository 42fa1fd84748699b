// Fuzz entry: a worker's saved position, as the servers hand it back, and parameters as a job file
// gives them. What is read can be written and read again to the same.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "learn/word2vec/exchange/positions.h"
#include "learn/word2vec/params.h"

namespace {

namespace word2vec = shoal::learn::word2vec;

void Positions(std::string_view bytes) {
  const auto positions = word2vec::DecodePositions(bytes);
  if (positions.ok() && word2vec::EncodePositions(*positions) != bytes) std::abort();
}

// "name=value" lines.
void Parameters(std::string_view text) {
  std::map<std::string, shoal::job::LearnValue> learn;
  for (int line = 1; !text.empty(); ++line) {
    const std::string_view one = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    const size_t equals = one.find('=');
    if (equals == std::string_view::npos) continue;
    learn[std::string(one.substr(0, equals))] = {std::string(one.substr(equals + 1)), line, 1};
  }
  const auto params = word2vec::Parse(learn, "job.yaml");
  if (!params.ok()) return;
  std::map<std::string, shoal::job::LearnValue> again;
  for (const auto& [name, value] : word2vec::ToText(*params)) again[name] = {value};
  const auto second = word2vec::Parse(again, "");
  if (!second.ok() || word2vec::ToText(*second) != word2vec::ToText(*params)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  Positions(text);
  Parameters(text);
  return 0;
}
