#include "ps/storage/initializer.h"

#include <cstring>

namespace shoal::ps {
namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ull;

float Unit(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

}  // namespace

void InitializeRow(const InitializerSpec& spec, Key key, size_t dim, float* row) {
  if (spec.kind == InitializerKind::kZeros) {
    std::memset(row, 0, dim * sizeof(float));
    return;
  }
  const float width = spec.hi - spec.lo;
  uint64_t state = Mix(Mix(spec.seed + kGolden) + kGolden * (key + 1));
  for (size_t i = 0; i < dim; i += 2) {
    state += kGolden;
    const uint64_t bits = Mix(state);
    row[i] = spec.lo + width * Unit(static_cast<uint32_t>(bits));
    if (i + 1 < dim) row[i + 1] = spec.lo + width * Unit(static_cast<uint32_t>(bits >> 32));
  }
}

}  // namespace shoal::ps
