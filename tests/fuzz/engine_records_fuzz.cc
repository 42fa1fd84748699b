// Fuzz entry: the local engine's records (tasks.json). What is read can be written and read again
// to the same; all else is refused with a text.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/local/job_records.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto records = shoal::engine::DecodeRecords(text);
  if (!records.ok()) {
    if (records.status().message().empty()) std::abort();
    return 0;
  }
  const std::string written = shoal::engine::EncodeRecords(*records);
  const auto again = shoal::engine::DecodeRecords(written);
  if (!again.ok() || shoal::engine::EncodeRecords(*again) != written) std::abort();
  return 0;
}
