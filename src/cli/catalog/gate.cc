// `shoal gate`: gives the programs of one job what its user may see of tables (data/gate). Started
// by a server, which writes the plan, a line of JSON, to its standard input and keeps that open:
// its end is the end of the gate.
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "base/mutex.h"
#include "base/seal.h"
#include "base/utf8.h"
#include "cli/catalog/catalog_commands.h"
#include "cli/terminal/report.h"
#include "data/gate/gate_server.h"

namespace shoal::cli {
namespace {

constexpr size_t kMaxPlan = size_t{256} << 20;
constexpr size_t kMaxToldObjects = 10'000;

Result<std::string> ReadPlan() {
  std::string text;
  char piece[16 << 10];
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "standard input");
    text.append(piece, static_cast<size_t>(got));
    if (text.ends_with('\n')) return text;
    if (got == 0) return InvalidArgument("expected the plan of a gate on standard input");
    if (text.size() > kMaxPlan) return ResourceExhausted("the plan of the gate is too long");
  }
}

void WaitForEnd() {
  char byte = 0;
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
    if (got == 0 || (got < 0 && errno != EINTR)) return;
  }
}

class Teller {
 public:
  void Tell(const json::object& line) {
    const MutexLock lock(mu_);
    const Status told = WriteAll(STDOUT_FILENO, ToText(line) + "\n");
    if (!told.ok()) PrintNote("the server cannot be told what is given: " + told.message());
  }

 private:
  Mutex mu_;
};

json::object ReadyLine(const data::GateSources& sources) {
  json::array objects;
  for (size_t i = 0; i < sources.objects.size() && i < kMaxToldObjects; ++i)
    objects.push_back(json::object{{"uri", EscapedUtf8(sources.objects[i].uri)},
                                   {"bytes", sources.objects[i].bytes},
                                   {"version", EscapedUtf8(sources.objects[i].version)}});
  return {{"data", sources.data},
          {"read", sources.records_read},
          {"given", sources.records_given},
          {"objects", std::move(objects)}};
}

int Serve() {
  // Neither its memory nor its environment is open to other processes of its user.
  ::prctl(PR_SET_DUMPABLE, 0);
  ::signal(SIGPIPE, SIG_IGN);
  auto text = ReadPlan();
  if (!text.ok()) return PrintError(text.status());
  const auto object = ParseJsonObject(*text);
  auto plan =
      object.ok() ? data::GatePlanFromJson(*object) : Result<data::GatePlan>(object.status());
  EraseSecret(&*text);
  if (!plan.ok()) return PrintError(plan.status().With("plan"));
  Teller teller;
  data::GateOptions options;
  options.plan = std::move(*plan);
  options.on_ready = [&](const data::GateSources& sources) { teller.Tell(ReadyLine(sources)); };
  options.on_failed = [&](const std::string& name, const Status& why) {
    teller.Tell({{"data", name}, {"error", why.message()}});
  };
  const auto gate = data::Gate::Start(std::move(options));
  if (!gate.ok()) return PrintError(gate.status());
  WaitForEnd();
  return 0;
}

}  // namespace

void AddGate(CLI::App& app, Run* chosen) {
  app.add_subcommand("gate", "Give a job's programs its tables")->callback([chosen] {
    *chosen = [](const Context& /*context*/) { return Serve(); };
  });
}

}  // namespace shoal::cli
