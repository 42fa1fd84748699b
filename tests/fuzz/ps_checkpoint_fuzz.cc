// A server's checkpoint file and a checkpoint's manifest: any bytes give records within their
// bounds, or an error. The checksums are put right in a second pass, so that what is behind them is
// met.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/bytes.h"
#include "ps/checkpoint/checkpoint_dir.h"
#include "ps/checkpoint/checkpoint_file.h"

namespace {

using namespace shoal;      // NOLINT: a program of one function
using namespace shoal::ps;  // NOLINT

class Visitor final : public CheckpointVisitor {
 public:
  Status OnHead(const CheckpointHead& head) override {
    if (head.base >= head.checkpoint || head.base < -1) std::abort();
    return Status::Ok();
  }
  Status OnBlobNames(const std::set<std::string, std::less<>>& names) override {
    for (const std::string& name : names) {
      if (name.size() > kMaxNameBytes) std::abort();
    }
    return Status::Ok();
  }
  Status OnTable(const TableSpec& spec) override { return Validate(spec); }
  Status OnRows(const TableSpec& spec, size_t floats, std::span<const Key> keys,
                std::span<const float> rows) override {
    if (rows.size() != keys.size() * floats || floats < spec.dim) std::abort();
    float sum = 0;
    for (const float value : rows) sum += value;
    if (std::isnan(sum)) return Status::Ok();
    for (const Key key : keys) {
      if (spec.key_space == KeySpace::kDense && key >= spec.rows) std::abort();
    }
    return Status::Ok();
  }
  Status OnProgress(int worker, std::string_view) override {
    if (worker < 0) std::abort();
    return Status::Ok();
  }
  Status OnBlob(std::string_view, uint64_t total, uint64_t offset,
                std::string_view bytes) override {
    if (offset + bytes.size() > total) std::abort();
    return Status::Ok();
  }
};

std::string WithRightSums(std::string_view bytes) {
  std::string fixed(bytes);
  size_t at = 24;
  if (fixed.size() >= 40 && fixed[8] == 2) {
    const uint32_t head = Crc32c(fixed.data(), 36);
    std::memcpy(fixed.data() + 36, &head, sizeof head);
    at = 40;
  }
  while (at + 16 <= fixed.size()) {
    uint32_t size = 0;
    std::memcpy(&size, fixed.data() + at + 4, sizeof size);
    const size_t there = std::min<size_t>(size, fixed.size() - at - 16);
    const uint32_t crc = Crc32c(fixed.data() + at + 16, there);
    std::memcpy(fixed.data() + at + 8, &crc, sizeof crc);
    const uint32_t head = Crc32c(fixed.data() + at, 12);
    std::memcpy(fixed.data() + at + 12, &head, sizeof head);
    at += 16 + there;
  }
  return fixed;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Visitor visitor;
  (void)ReadCheckpointBytes(bytes, 7, &visitor);
  (void)ReadCheckpointBytes(WithRightSums(bytes), 7, &visitor);
  const auto manifest = DecodeManifest(bytes);
  if (!manifest.ok()) return 0;
  const auto again = DecodeManifest(EncodeManifest(*manifest));
  if (!again.ok() || again->files.size() != manifest->files.size()) std::abort();
  return 0;
}
