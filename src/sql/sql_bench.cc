// Parsing of long scripts, and completion at their end.
#include <benchmark/benchmark.h>

#include <string>

#include "sql/complete/complete.h"
#include "sql/syntax/parser.h"
#include "sql/testing/fake_host.h"

namespace shoal::sql {
namespace {

// Statements of all kinds, about 80 bytes a line.
std::string ScriptOf(size_t lines) {
  std::string script;
  for (size_t i = 0; script.size() < size_t{15} << 20 && i < lines; ++i) {
    const std::string n = std::to_string(i);
    switch (i % 5) {
      case 0:
        script +=
            "load csv.`/data/part-" + n + ".csv` where header=\"true\" and sep=\",\" as t" + n;
        break;
      case 1:
        script += "select a, count(*) n, avg(b) /* mean */ from t" + n +
                  " group by a order by n as s" + n;
        break;
      case 2:
        script += "train t" + n +
                  " as FM.`/tmp/m` where `fitParam.0.epochs`=\"3\" and label=\"y\" as r" + n;
        break;
      case 3:
        script += "set x" + n + " = '''" + std::string(50, 'x') + "'''; -- a variable";
        break;
      default:
        script += "save overwrite t" + n + " as csv.`/tmp/${x" + n + "}/out`";
    }
    script += i % 5 == 3 ? "\n" : ";\n";
  }
  return script;
}

void ParseScript(benchmark::State& state) {
  const ScriptText script("bench.sql", ScriptOf(static_cast<size_t>(state.range(0))));
  for (auto _ : state) {
    const auto count = CheckScript(script);
    if (!count.ok()) state.SkipWithError(count.status().message().c_str());
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * script.text().size()));
  state.counters["MB"] = static_cast<double>(script.text().size()) / 1e6;
}
BENCHMARK(ParseScript)->Arg(1'300)->Arg(13'000)->Arg(90'000)->Unit(benchmark::kMillisecond);

void CompleteAtTheEnd(benchmark::State& state) {
  const std::string text =
      ScriptOf(static_cast<size_t>(state.range(0))) + "train t as LogisticRegression.`m` where lab";
  FakeHost host;
  SessionState session(&host);
  for (auto _ : state) {
    const Completion completion = Complete(text, text.size(), session);
    if (completion.candidates.empty()) state.SkipWithError("no candidates");
  }
}
BENCHMARK(CompleteAtTheEnd)->Arg(10)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shoal::sql
