// Cost of starting and ending a program in each mode. The goal is 3 ms for a program that does
// nothing.
#include <benchmark/benchmark.h>

#include "host/process/process_tree.h"

namespace shoal::host {
namespace {

// Arguments: TreeMode, whether memory and processor are limited.
void StartAndEnd(benchmark::State& state) {
  Isolation isolation;
  isolation.tree = static_cast<TreeMode>(state.range(0));
  if (!TreeModeWorks(isolation.tree)) {
    state.SkipWithError("this mode is not permitted here");
    return;
  }
  isolation.cgroups = FindCgroups();
  ProcessSpec spec;
  spec.job_id = "host-bench";
  spec.name = "worker-0.0";
  spec.argv = {"/bin/true"};
  spec.env = {"PATH=/usr/bin:/bin"};
  if (state.range(1) != 0) spec.resources = {1, 256 << 20, 0};
  for (auto _ : state) {
    auto tree = ProcessTree::Start(spec, isolation);
    if (!tree.ok() || !(*tree)->Wait(std::chrono::seconds(10))) {
      state.SkipWithError("a start failed");
      return;
    }
  }
}
BENCHMARK(StartAndEnd)
    ->ArgsProduct({{0, 1, 2}, {0, 1}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void Probe(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(ProbeIsolation());
}
BENCHMARK(Probe)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace shoal::host
