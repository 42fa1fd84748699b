// Writes planted clicks in libffm text: FIELDS fields, a few classes in the first and up to 100,000
// in the last, drawn by a factorization machine whose weights and factors drift from the first
// example to the last. For the quality tables of the sparse trainers (docs/bench/sparse.md).
//
//   planted_clicks EXAMPLES SEED [FROM TO] > FILE
//
// FROM and TO are points in time, 0 and 1 if not given: held-out examples of the drift's end have
// 1 1. Prints the log-loss of the machine that drew them on standard error, the least that a
// model can have. About 1 µs a cell.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr uint32_t kFields = 12;
constexpr uint32_t kFactors = 4;
constexpr double kWeight = 0.35, kFactor = 0.35;  // standard deviations
constexpr double kDrift = 0.8;                    // radians, over all
constexpr double kBias = -1.2;

uint64_t Mix(uint64_t x) {  // splitmix64 (Steele et al. 2014)
  x += 0x9e37'79b9'7f4a'7c15;
  x = (x ^ (x >> 30)) * 0xbf58'476d'1ce4'e5b9;
  x = (x ^ (x >> 27)) * 0x94d0'49bb'1331'11eb;
  return x ^ (x >> 31);
}

double Unit(uint64_t x) { return (static_cast<double>(x >> 11) + 0.5) * 0x1p-53; }

// A normal value that belongs to `key`.
double Normal(uint64_t key) {
  const double radius = std::sqrt(-2 * std::log(Unit(Mix(2 * key))));
  return radius * std::cos(6.283185307179586 * Unit(Mix(2 * key + 1)));
}

// Both ends of a number's drift.
struct Ends {
  float from, to;
};

}  // namespace

int main(int count, char** words) {
  if (count != 3 && count != 5) {
    std::fputs("usage: planted_clicks EXAMPLES SEED [FROM TO] > FILE\n", stderr);
    return 2;
  }
  const uint64_t examples = std::strtoull(words[1], nullptr, 10);
  const uint64_t seed = std::strtoull(words[2], nullptr, 10);
  const double from = count == 5 ? std::atof(words[3]) : 0,
               to = count == 5 ? std::atof(words[4]) : 1;
  std::vector<uint32_t> begins(kFields + 1);
  for (uint32_t f = 0; f < kFields; ++f)
    begins[f + 1] = begins[f] + static_cast<uint32_t>(std::lround(8 * std::pow(2.358, f)));
  constexpr uint32_t kNumbers = kFactors + 1;
  std::vector<Ends> hidden(uint64_t{begins[kFields]} * kNumbers);
  for (uint64_t i = 0; i < hidden.size(); ++i) {
    const double scale = i % kNumbers == 0 ? kWeight : kFactor;
    hidden[i] = {static_cast<float>(scale * Normal(2 * i)),
                 static_cast<float>(scale * Normal(2 * i + 1))};
  }
  uint64_t random = Mix(seed);
  const auto draw = [&random] { return Unit(random = Mix(random)); };
  double loss = 0;
  std::string line;
  for (uint64_t example = 0; example < examples; ++example) {
    const double time =
        from + (to - from) * static_cast<double>(example) / static_cast<double>(examples);
    const double old_part = std::cos(kDrift * time), new_part = std::sin(kDrift * time);
    double margin = kBias, sums[kFactors] = {}, squares[kFactors] = {};
    line.clear();
    for (uint32_t f = 0; f < kFields; ++f) {
      const double skewed = std::pow(draw(), 3);
      const uint32_t feature =
          begins[f] +
          static_cast<uint32_t>(skewed * static_cast<double>(begins[f + 1] - begins[f]));
      const Ends* const own = &hidden[uint64_t{feature} * kNumbers];
      margin += old_part * own[0].from + new_part * own[0].to;
      for (uint32_t k = 0; k < kFactors; ++k) {
        const double v = old_part * own[k + 1].from + new_part * own[k + 1].to;
        sums[k] += v;
        squares[k] += v * v;
      }
      line += ' ' + std::to_string(f) + ':' + std::to_string(feature) + ":1";
    }
    for (uint32_t k = 0; k < kFactors; ++k) margin += (sums[k] * sums[k] - squares[k]) / 2;
    const double probability = 1 / (1 + std::exp(-margin));
    const bool click = draw() < probability;
    loss -= std::log(click ? probability : 1 - probability);
    std::printf("%d%s\n", click, line.c_str());
  }
  std::fprintf(stderr, "log-loss %.4f, %u features\n", loss / static_cast<double>(examples),
               begins[kFields]);
  return 0;
}
