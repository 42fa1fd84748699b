// A day of a job of 1,000 tasks that report some numbers every second: the bytes on disk, the cost
// of keeping a number and the time to read a curve.
#include <benchmark/benchmark.h>

#include <cmath>
#include <random>

#include "base/clock.h"
#include "base/file.h"
#include "controller/series/series_files.h"
#include "controller/series/series_log.h"
#include "controller/series/series_reader.h"

namespace shoal::controller {
namespace {

constexpr int kTasks = 1000;
constexpr int64_t kStart = 1'700'000'000'000;
constexpr size_t kLogBytes = size_t{2} << 20;

uint64_t BytesOf(const std::filesystem::path& dir) {
  uint64_t bytes = 0;
  const auto files = ListSeriesFiles(dir);
  for (const SeriesFile& file : *files) bytes += file.bytes;
  return bytes;
}

// Writes as SeriesRecorder does, with noise in times and losses. Returns the greatest size seen.
uint64_t WriteDay(const std::filesystem::path& dir, int seconds, int metrics) {
  const std::vector<std::string> names = {"loss", "step", "words_per_second", "lr"};
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise(0, 0.01);
  uint64_t number = 0, most = 0;
  auto encoder = std::make_unique<SeriesLogEncoder>();
  auto log = SeriesLogFile::Create(SeriesLogPath(dir, ++number));
  for (int t = 0; t < seconds; ++t) {
    for (int task = 0; task < kTasks; ++task) {
      const int64_t ms = kStart + t * 1000 + static_cast<int64_t>(random() % 20);
      const double values[] = {2 * std::exp(-t / 2e4) + noise(random), 1.0 * t * 128,
                               5e5 * (1 + noise(random)), 0.025 * (1 - t / 86400.0)};
      for (int i = 0; i < metrics; ++i) {
        const auto m = static_cast<size_t>(i);
        (void)encoder->Add(SeriesName("worker", task, names[m]), {ms, values[m]});
      }
      if (encoder->pending_bytes() >= (64 << 10) && !log->Append(encoder->TakeBlock()).ok())
        std::abort();
    }
    if (log->size() < kLogBytes) continue;
    encoder = std::make_unique<SeriesLogEncoder>();
    log = SeriesLogFile::Create(SeriesLogPath(dir, ++number));
    most = std::max(most, BytesOf(dir));
    if (!CompactSeries(dir, {}).ok()) std::abort();
  }
  return most;
}

// Arguments: seconds, numbers of each task.
void Day(benchmark::State& state) {
  const int seconds = static_cast<int>(state.range(0));
  const int metrics = static_cast<int>(state.range(1));
  for (auto _ : state) {
    const TempDir place = std::move(*TempDir::Create());
    const uint64_t most = WriteDay(place.path(), seconds, metrics);
    state.PauseTiming();
    state.counters["MB"] = static_cast<double>(BytesOf(place.path())) / 1e6;
    state.counters["most_MB"] = static_cast<double>(most) / 1e6;
    constexpr int kReads = 50;
    double slowest = 0, sum = 0;
    for (int i = 0; i < kReads; ++i) {
      const TimePoint begun = RealClock::Get()->Now();
      const auto curve =
          ReadSeries(place.path(), SeriesName("worker", i * 17, "loss"), {.points = 1000});
      if (!curve.ok() || curve->empty()) std::abort();
      const double ms =
          std::chrono::duration<double, std::milli>(RealClock::Get()->Now() - begun).count();
      slowest = std::max(slowest, ms);
      sum += ms;
    }
    state.counters["curve_ms"] = sum / kReads;
    state.counters["slowest_curve_ms"] = slowest;
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * seconds * kTasks * metrics);
}
BENCHMARK(Day)->Args({86400, 1})->Args({86400, 4})->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace shoal::controller
