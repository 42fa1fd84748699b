// `shoal queue`: the queues of a server, what they use of their quotas, and who waits for what.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/jobs/job_text.h"
#include "cli/jobs/open_jobs.h"
#include "cli/terminal/report.h"
#include "queue/core/amounts.h"

namespace shoal::cli {
namespace {

using queue::AmountText;

// The array `field` of an answer; empty if there is none.
json::array ListOf(const json::object& object, std::string_view field) {
  const json::value* const list = object.if_contains(field);
  return list != nullptr && list->is_array() ? list->get_array() : json::array();
}

// Calls `use` with each object of the array.
template <typename Use>
void ForEach(const json::object& object, std::string_view field, const Use& use) {
  for (const json::value& one : ListOf(object, field))
    if (one.is_object()) use(one.get_object());
}

size_t ResourceOf(const json::object& object) {
  const std::string name = GetStringOr(object, "resource", "");
  for (size_t r = 0; r < queue::kResources; ++r)
    if (name == queue::kResourceNames[r]) return r;
  return 0;
}

// "2 GPU": an amount of an answer, in cores, bytes or devices.
std::string Amount(size_t resource, const json::object& object, std::string_view field) {
  constexpr size_t kMemory = 1;
  const double number = GetDoubleOr(object, field, static_cast<double>(GetIntOr(object, field, 0)));
  const double unit = resource == kMemory ? 1.0 / 1024 : 1000;
  return AmountText(resource, std::llround(number * unit));
}

std::string Name(const json::object& queue) {
  const auto depth = static_cast<size_t>(std::clamp<int64_t>(GetIntOr(queue, "depth", 0), 0, 32));
  return std::string(2 * depth, ' ') + GetStringOr(queue, "name", "");
}

void AddRows(const json::object& queue, std::vector<std::vector<std::string>>* rows) {
  std::vector<std::string> row = {Name(queue),
                                  GetStringOr(queue, "mode", ""),
                                  fmt::format("{:g}", GetDoubleOr(queue, "weight", 1)),
                                  fmt::format("{:.3f}", GetDoubleOr(queue, "share", 0)),
                                  std::to_string(GetIntOr(queue, "running", 0)),
                                  std::to_string(GetIntOr(queue, "waiting", 0))};
  const size_t before = rows->size();
  ForEach(queue, "flavors", [&](const json::object& flavor) {
    ForEach(flavor, "resources", [&](const json::object& one) {
      const size_t resource = ResourceOf(one);
      if (rows->size() > before) row = {"", "", "", "", "", ""};
      const bool limited = GetBoolOr(one, "limited", false);
      for (const std::string& cell :
           {GetStringOr(flavor, "flavor", ""),
            limited ? Amount(resource, one, "nominal") : std::string("no quota"),
            Amount(resource, one, "used"),
            limited ? Amount(resource, one, "borrowed") : std::string(),
            limited ? Amount(resource, one, "lent") : std::string()})
        row.push_back(cell);
      rows->push_back(row);
    });
  });
  if (rows->size() > before) return;
  row.resize(11);
  rows->push_back(row);
}

std::string WaitingText(const json::object& queue) {
  const json::array jobs = ListOf(queue, "jobs");
  if (jobs.empty()) return "";
  std::string text = "\n" + GetStringOr(queue, "name", "") + ": waiting\n";
  ForEach(queue, "jobs", [&](const json::object& job) {
    const std::string id = GetStringOr(job, "id", "");
    text += "  " + (id.empty() ? "a job of team " + GetStringOr(job, "team", "") : id) + ": " +
            GetStringOr(job, "reason", "") + "\n";
  });
  const int64_t more = GetIntOr(queue, "waiting", 0) - static_cast<int64_t>(jobs.size());
  if (more > 0) text += fmt::format("  and {} more\n", more);
  return text;
}

int Show(const Context& context, controller::Queues* queues) {
  const Result<json::object> found = queues->Describe();
  if (!found.ok()) return PrintError(found.status());
  if (context.json) return PrintResult(JsonLine(*found));
  std::vector<std::vector<std::string>> rows = {{"QUEUE", "MODE", "WEIGHT", "SHARE", "RUNNING",
                                                 "WAITING", "FLAVOR", "QUOTA", "USED", "BORROWED",
                                                 "LENT"}};
  std::string waiting;
  ForEach(*found, "items", [&](const json::object& queue) {
    AddRows(queue, &rows);
    waiting += WaitingText(queue);
  });
  return PrintResult(Table(rows) + waiting);
}

int SetMode(controller::Queues* queues, const std::string& name, const std::string& mode) {
  const Status done = queues->SetMode(name, mode);
  if (!done.ok()) return PrintError(done);
  if (mode == "open") return PrintConfirmation(name + " starts jobs again\n");
  return PrintConfirmation(name + (mode == "hold" ? " starts no more jobs; those that run go on\n"
                                                  : " starts no more jobs; those that run are "
                                                    "preempted\n"));
}

int Reload(controller::Queues* queues) {
  const Status done = queues->Reload();
  return done.ok() ? PrintConfirmation("the policy file is in force\n") : PrintError(done);
}

using Action = std::function<int(const Context&, controller::Queues*)>;

Run WithQueues(Action action) {
  return [action = std::move(action)](const Context& context) {
    const auto jobs = OpenJobs(context);
    if (!jobs.ok()) return PrintError(jobs.status());
    const auto queues = (*jobs)->OpenQueues();
    return queues.ok() ? action(context, queues->get()) : PrintError(queues.status());
  };
}

void AddMode(CLI::App* parent, const char* name, const char* mode, const char* doc, Run* chosen) {
  auto queue = std::make_shared<std::string>();
  CLI::App* sub = parent->add_subcommand(name, doc);
  sub->add_option("NAME", *queue, "Name of the queue")->required();
  sub->fallthrough();  // --json and --server are the parent's
  sub->footer(std::string("Examples:\n  shoal queue ") + name + " research");
  sub->callback([queue, mode, chosen] {
    *chosen = WithQueues([queue, mode](const Context& /*context*/, controller::Queues* queues) {
      return SetMode(queues, *queue, mode);
    });
  });
}

constexpr const char* kQueueFooter = R"help(Examples:
  shoal queue
  shoal queue --json
  shoal queue hold research
  shoal queue drain research
  shoal queue resume research
  shoal queue reload

LENT is what others use of a queue's quota, so that it is back only when they end or are preempted.
Holds are kept when the server is started again. `reload` reads the file of `shoal server --queues`
again, as SIGHUP does; a policy that would strand jobs is refused (docs/queue.md).)help";

}  // namespace

void AddQueue(CLI::App& app, Run* chosen) {
  CLI::App* sub = app.add_subcommand("queue", "Show the queues of a server, or hold one");
  AddMode(sub, "hold", "hold", "Start no more jobs of a queue and those below it", chosen);
  AddMode(sub, "drain", "drain", "Also preempt those that run", chosen);
  AddMode(sub, "resume", "open", "Start its jobs again", chosen);
  CLI::App* reload = sub->add_subcommand("reload", "Read the server's policy file again");
  reload->fallthrough();
  reload->footer("Examples:\n  shoal queue reload");
  reload->callback([chosen] {
    *chosen = WithQueues(
        [](const Context& /*context*/, controller::Queues* queues) { return Reload(queues); });
  });
  sub->footer(kQueueFooter);
  sub->callback([sub, chosen] {
    if (!sub->get_subcommands().empty()) return;  // which has its own function
    *chosen = WithQueues(Show);
  });
}

}  // namespace shoal::cli
