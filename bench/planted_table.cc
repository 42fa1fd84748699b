// Writes a planted table as CSV: a label, 20 numeric columns that move together and four columns of
// classes, of which a click is drawn by a logistic model. Nearly every row has every feature, the
// opposite of planted_clicks.cc; for the quality tables of the sparse trainers
// (docs/bench/sparse.md).
//
//   planted_table EXAMPLES SEED > FILE
//
// Prints the log-loss of the model that drew the labels on standard error, the least that a model
// can have. The columns: label, n1 to n20, c1 to c4.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr int kNumeric = 20;
constexpr uint32_t kClasses[] = {4, 12, 50, 200};
constexpr double kWeight = 0.4, kClassWeight = 0.7, kShared = 0.7;  // standard deviations
constexpr double kBias = -0.8;

uint64_t Mix(uint64_t x) {  // splitmix64 (Steele et al. 2014)
  x += 0x9e37'79b9'7f4a'7c15;
  x = (x ^ (x >> 30)) * 0xbf58'476d'1ce4'e5b9;
  x = (x ^ (x >> 27)) * 0x94d0'49bb'1331'11eb;
  return x ^ (x >> 31);
}

double Unit(uint64_t x) { return (static_cast<double>(x >> 11) + 0.5) * 0x1p-53; }

double Normal(uint64_t key) {
  const double radius = std::sqrt(-2 * std::log(Unit(Mix(2 * key))));
  return radius * std::cos(6.283185307179586 * Unit(Mix(2 * key + 1)));
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) {
    std::fputs("usage: planted_table EXAMPLES SEED > FILE\n", stderr);
    return 2;
  }
  const uint64_t examples = std::strtoull(words[1], nullptr, 10);
  uint64_t random = Mix(std::strtoull(words[2], nullptr, 10));
  const auto draw = [&random] { return random = Mix(random); };
  std::printf("label");
  for (int i = 1; i <= kNumeric; ++i) std::printf(",n%d", i);
  for (size_t i = 1; i <= std::size(kClasses); ++i) std::printf(",c%zu", i);
  std::printf("\n");
  double loss = 0;
  std::string line;
  for (uint64_t example = 0; example < examples; ++example) {
    const double shared = kShared * Normal(draw());
    double margin = kBias;
    line.clear();
    for (uint64_t i = 0; i < kNumeric; ++i) {
      const double x = shared + std::sqrt(1 - kShared * kShared) * Normal(draw()) + 0.3;
      margin += kWeight * Normal(1000 + i) * x;
      char cell[16];
      std::snprintf(cell, sizeof cell, ",%.3f", x);
      line += cell;
    }
    for (uint64_t c = 0; c < std::size(kClasses); ++c) {
      const auto one = static_cast<uint64_t>(std::pow(Unit(draw()), 2) * kClasses[c]);
      margin += kClassWeight * Normal(2000 + 1000 * c + one);
      line += ",k" + std::to_string(one);
    }
    const double probability = 1 / (1 + std::exp(-margin));
    const bool click = Unit(draw()) < probability;
    loss -= std::log(click ? probability : 1 - probability);
    std::printf("%d%s\n", click, line.c_str());
  }
  std::fprintf(stderr, "log-loss %.4f\n", loss / static_cast<double>(examples));
  return 0;
}
