// Overhead of the local engine: from Apply of a coordinator and four launchers that do nothing to
// the end of Stop. Part of the 120 ms budget of a job of four `true`.
#include <benchmark/benchmark.h>

#include <atomic>

#include "base/file.h"
#include "base/id.h"
#include "base/mutex.h"
#include "engine/local/local_engine.h"

namespace shoal::engine {
namespace {

void ApplyAndStop(benchmark::State& state) {
  auto dir = TempDir::Create("engine-bench");
  auto engine = MakeLocalEngine();
  if (!dir.ok() || !engine.ok()) return state.SkipWithError("cannot start");
  DesiredJob job{"engine-bench-" + RandomHex(4), dir->path(), {}};
  for (int i = 0; i < 5; ++i) {
    DesiredTask task;
    task.role = "worker";
    task.index = i;
    task.argv = {"/bin/true"};
    job.tasks.push_back(task);
  }
  for (auto _ : state) {
    Mutex mu;
    CondVar changed;
    int ended = 0;
    auto watch = (*engine)->Watch(job.job_id, [&](const TaskEvent& event) {
      const MutexLock lock(mu);
      ended += event.phase == TaskPhase::kEnded ? 1 : 0;
      changed.notify_all();
    });
    if (!(*engine)->Apply(job).ok()) return state.SkipWithError("Apply failed");
    {
      MutexLock lock(mu);
      changed.wait(lock, [&] { return ended == 5; });
    }
    if (!(*engine)->Stop(job.job_id, std::chrono::seconds(1)).ok())
      return state.SkipWithError("Stop failed");
  }
}
BENCHMARK(ApplyAndStop)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace shoal::engine
