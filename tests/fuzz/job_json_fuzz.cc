// Fuzz entry: a job's JSON (job.json). What is read can be written and read again to the same, and
// planned or refused.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "job/execution/plan.h"
#include "job/spec/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto job = shoal::job::FromJsonText(text);
  if (!job.ok()) return 0;
  const auto again = shoal::job::FromJsonText(shoal::job::ToJsonText(*job));
  if (!again.ok() || !(*again == *job)) std::abort();
  (void)shoal::job::MakePlan(*job);
  return 0;
}
