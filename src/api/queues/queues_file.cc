#include "api/queues/queues_file.h"

#include <utility>

#include "base/file.h"
#include "queue/policy/parse_policy.h"

namespace shoal::api {
namespace {

constexpr size_t kMaxQueuesFile = size_t{1} << 20;

}  // namespace

Result<queue::Policy> ReadQueues(const std::filesystem::path& file) {
  TRY_ASSIGN(const std::string text, ReadFile(file.string(), kMaxQueuesFile));
  return queue::ParsePolicy(text, file.string());
}

void ReloadQueues(const std::filesystem::path& file, controller::QueueManager* queues,
                  std::function<void(const Status&)> done) {
  if (file.empty())
    return done(FailedPrecondition(
        "this server has no policy file; start it with `shoal server --queues FILE`"));
  Result<queue::Policy> policy = ReadQueues(file);
  if (!policy.ok()) return done(policy.status());
  queues->Replace(std::move(*policy), std::move(done));
}

}  // namespace shoal::api
