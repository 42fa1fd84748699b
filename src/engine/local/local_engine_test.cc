// What the local engine does with a job of many tasks.
#include "engine/local/local_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>

#include "base/file.h"

namespace shoal::engine {
namespace {

// Its lock is free between a few starts and the next ones: the job's coordinator is dialled, and
// Ctrl-C is heard, while a thousand tasks are made.
TEST(LocalEngine, OthersAreServedWhileManyTasksStart) {
  const TempDir dir = std::move(*TempDir::Create());
  const auto engine = MakeLocalEngine();
  ASSERT_TRUE(engine.ok()) << engine.status().message();
  DesiredJob job;
  job.job_id = "many-1";
  job.job_dir = dir.path();
  for (int i = 0; i < 64; ++i) {
    DesiredTask task;
    task.role = "worker";
    task.index = i;
    task.argv = {"/bin/true"};
    job.tasks.push_back(task);
  }
  std::promise<int64_t> begun;  // how many had been started when the first was told of
  bool first = true;
  const auto watch = (*engine)->Watch("many-1", [&](const TaskEvent&) {
    if (!std::exchange(first, false)) return;
    const auto tasks = (*engine)->Adopt("many-1", dir.path());
    begun.set_value(
        !tasks.ok() ? -1 : std::count_if(tasks->begin(), tasks->end(), [](const TaskStatus& task) {
          return task.pid > 0;
        }));
  });
  ASSERT_TRUE((*engine)->Apply(job).ok());
  auto count = begun.get_future();
  ASSERT_EQ(count.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  const int64_t started = count.get();
  EXPECT_GT(started, 0);
  EXPECT_LT(started, 64);
  EXPECT_TRUE((*engine)->Stop("many-1", std::chrono::milliseconds(0)).ok());
}

}  // namespace
}  // namespace shoal::engine
