// Fuzz entry: job files. Whatever the bytes, ParseJob ends with a Job that survives its own JSON
// and its own YAML, or with an InvalidArgument that has a text. job_test runs it over a small
// corpus.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "job/execution/plan.h"
#include "job/file/parse.h"
#include "job/file/write_yaml.h"
#include "job/spec/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto job = shoal::job::ParseJob(text, "fuzz.yaml", {"priority=1"});
  if (!job.ok()) {
    const bool told =
        job.status().code() == shoal::Code::kInvalidArgument && !job.status().message().empty();
    if (!told) std::abort();
    return 0;
  }
  const auto again = shoal::job::FromJsonText(shoal::job::ToJsonText(*job));
  if (!again.ok() || !(*again == *job)) std::abort();
  auto written = shoal::job::ParseJob(shoal::job::WriteYaml(*job), "fuzz.yaml");
  if (!written.ok()) std::abort();
  for (auto& [key, value] : written->learn) {
    const auto known = job->learn.find(key);  // only the places may differ
    if (known != job->learn.end()) {
      value.line = known->second.line;
      value.column = known->second.column;
    }
  }
  if (!(*written == *job)) std::abort();
  const auto plan = shoal::job::MakePlan(*job);
  if (!plan.ok()) std::abort();
  return 0;
}
