// `shoal simulate`: what another policy would have done with the same jobs.

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <optional>

#include "base/file.h"
#include "base/json.h"
#include "base/output_file.h"
#include "cli/commands/commands.h"
#include "cli/terminal/report.h"
#include "queue/policy/parse_policy.h"
#include "queue/simulate/report.h"
#include "queue/simulate/simulator.h"
#include "queue/simulate/trace.h"

namespace shoal::cli {
namespace {

constexpr size_t kMostTraceBytes = size_t{4} << 30;
constexpr size_t kMostPolicyBytes = size_t{4} << 20;

struct SimulateArguments {
  std::string events;
  std::string policy;
  std::string against;
  std::string generate;
  std::string svg;
  std::vector<std::string> machines;
  int64_t jobs = 10'000;
  uint64_t seed = 1;
  size_t differences = 10;
};

// "gpu.gpu=+4", "gpu.gpu=64": changes every statement about the machines of the flavor.
Status ChangeMachines(const std::string& change, queue::Trace* trace) {
  const size_t dot = change.find('.');
  const size_t equals = change.find('=');
  const Status wrong = InvalidArgument(
      "--machines: got '" + change +
      "', expected FLAVOR.RESOURCE=NUMBER, such as a100.gpu=64, or =+4 or =-4 to change what there "
      "is; RESOURCE is cpu or gpu");
  if (dot == std::string::npos || equals == std::string::npos || equals < dot) return wrong;
  const std::string flavor = change.substr(0, dot);
  const std::string resource = change.substr(dot + 1, equals - dot - 1);
  const std::string value = change.substr(equals + 1);
  if ((resource != "cpu" && resource != "gpu") || value.empty()) return wrong;
  const size_t r = resource == "cpu" ? 0 : 2;
  const bool relative = value[0] == '+' || value[0] == '-';
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (end == value.c_str() || *end != '\0' || !(number > -1e9 && number < 1e9)) return wrong;
  const auto thousandths = static_cast<int64_t>(number * 1000);
  bool found = false;
  for (queue::TraceMachines& machines : trace->machines) {
    if (machines.flavor != flavor) continue;
    found = true;
    int64_t& total = machines.total[r];
    total = std::max<int64_t>(
        0, relative ? (total >= queue::kUnlimited ? 0 : total) + thousandths : thousandths);
  }
  if (found) return Status::Ok();
  if (relative)
    return NotFound("--machines: the log states no machines of the flavor '" + flavor + "'");
  queue::TraceMachines machines;
  machines.flavor = flavor;
  machines.total[r] = thousandths;
  trace->machines.push_back(machines);
  return Status::Ok();
}

Result<queue::Policy> ReadPolicy(const std::string& path) {
  TRY_ASSIGN(const std::string text, ReadFile(path, kMostPolicyBytes));
  return queue::ParsePolicy(text, path);
}

// First in, first out: the queues of the policy without quotas, and no job overtakes another.
queue::Policy FifoOf(const queue::Policy& policy) {
  queue::Policy fifo = policy;
  fifo.backfill = false;
  fifo.grow = false;
  fifo.usage_half_life = queue::Millis(0);
  for (queue::QueueSpec& queue : fifo.queues) {
    queue.quota.clear();
    queue.weight = 1;
    queue.order = queue::QueueOrder::kStrict;
    queue.preempt_within = queue.reclaim = queue::PreemptRule::kNever;
    queue.per_user = queue.per_team = {};
  }
  return fifo;
}

Status PrintSimulation(const Context& context, const SimulateArguments& arguments) {
  TRY_ASSIGN(const std::string text, ReadFile(arguments.events, kMostTraceBytes));
  TRY_ASSIGN(queue::Trace trace, queue::ParseTrace(text, arguments.events));
  for (const std::string& change : arguments.machines) TRY(ChangeMachines(change, &trace));
  TRY_ASSIGN(const queue::Policy policy, ReadPolicy(arguments.policy));
  std::vector<queue::SimulatedPolicy> simulated;
  if (arguments.against == "fifo") {
    simulated.push_back({"first in, first out", {}});
    TRY_ASSIGN(simulated.back().result, queue::Simulate(trace, FifoOf(policy)));
  } else if (!arguments.against.empty()) {
    TRY_ASSIGN(const queue::Policy against, ReadPolicy(arguments.against));
    simulated.push_back({arguments.against, {}});
    TRY_ASSIGN(simulated.back().result, queue::Simulate(trace, against));
  }
  simulated.push_back({arguments.policy, {}});
  const auto begin = std::chrono::steady_clock::now();
  TRY_ASSIGN(simulated.back().result, queue::Simulate(trace, policy));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const int64_t events = simulated.back().result.events;
  if (!arguments.svg.empty())
    TRY(WriteOutputFile(arguments.svg, queue::ReportSvg(trace, simulated)));
  if (context.json) {
    json::array policies;
    for (const queue::SimulatedPolicy& one : simulated) {
      json::object summary = queue::SummaryJson(queue::Summarize(trace, one.result));
      summary["policy"] = one.name;
      policies.push_back(std::move(summary));
    }
    return PrintOut(JsonLine(
        json::object{{"policies", std::move(policies)}, {"events", events}, {"seconds", seconds}}));
  }
  char speed[96];
  std::snprintf(speed, sizeof speed, "\n%lld events in %.2f s\n", static_cast<long long>(events),
                seconds);
  return PrintOut(queue::ReportText(trace, simulated, arguments.differences) + speed);
}

Status RunSimulate(const Context& context, const SimulateArguments& arguments) {
  if (!arguments.generate.empty()) {
    TRY_ASSIGN(const queue::Scenario scenario,
               queue::GenerateTrace(arguments.generate, arguments.jobs, arguments.seed));
    return PrintOut(queue::TraceText(scenario.trace));
  }
  if (arguments.events.empty())
    return InvalidArgument("got no log, expected EVENTS, or --generate to make one");
  if (arguments.policy.empty())
    return InvalidArgument("got no policy, expected --policy FILE (docs/queue.md)");
  return PrintSimulation(context, arguments);
}

constexpr const char* kSimulateFooter = R"help(Examples:
  shoal simulate --generate cluster --jobs 20000 > events.jsonl
  shoal simulate events.jsonl --policy new.yaml
  shoal simulate events.jsonl --policy new.yaml --against old.yaml --svg waits.svg
  shoal simulate events.jsonl --policy new.yaml --machines gpu.gpu=+4

EVENTS is a file of JSON lines: submitted and cancelled jobs, and the machines; docs/queue.md describes
it. The scheduler is that of `shoal server`; only the engines are simulated. Without --against, the
policy is compared with first in, first out.)help";

}  // namespace

void AddSimulate(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<SimulateArguments>();
  arguments->against = "fifo";
  CLI::App* sub = app.add_subcommand("simulate", "Run a log of jobs through a queue policy");
  sub->add_option("EVENTS", arguments->events, "Log of jobs and machines, JSON lines")
      ->type_name("");
  sub->add_option("--policy", arguments->policy, "Policy file to simulate")->type_name("FILE");
  sub->add_option("--against", arguments->against,
                  "Policy file to compare with, or fifo; empty: none")
      ->type_name("FILE")
      ->capture_default_str();
  sub->add_option("--machines", arguments->machines,
                  "Other machines: FLAVOR.RESOURCE=NUMBER, or =+NUMBER, =-NUMBER")
      ->type_name("CHANGE");
  sub->add_option("--differences", arguments->differences,
                  "Number of jobs to show whose waits differ most")
      ->type_name("N")
      ->capture_default_str();
  sub->add_option("--svg", arguments->svg, "Write the distribution of the waits to this file")
      ->type_name("FILE");
  sub->add_option("--generate", arguments->generate,
                  "Print a generated log: cluster, kueue-baseline, kueue-large or kueue-large-2026")
      ->type_name("SHAPE");
  sub->add_option("--jobs", arguments->jobs, "Number of jobs of --generate cluster")
      ->check(CLI::Range(1, 100'000'000))
      ->type_name("N")
      ->capture_default_str();
  sub->add_option("--seed", arguments->seed, "Seed of --generate cluster")
      ->type_name("N")
      ->capture_default_str();
  sub->footer(kSimulateFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) {
      const Status status = RunSimulate(context, *arguments);
      return status.ok() ? 0 : PrintError(status);
    };
  });
}

}  // namespace shoal::cli
