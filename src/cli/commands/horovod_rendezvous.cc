// `shoal horovod-rendezvous`: the program of role `rendezvous` in a job of framework horovod.
// Started by hand, it serves programs started by hand.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/terminal/report.h"
#include "rendezvous/framework_services/horovod_server.h"

namespace shoal::cli {
namespace {

constexpr const char* kHorovodRendezvousFooter = R"help(Examples:
  shoal horovod-rendezvous --hosts "127.0.0.1:2" --host 127.0.0.1 --port 9092

A job of framework horovod runs it as its role rendezvous (docs/frameworks.md). Started by hand, it
runs until it is interrupted (Ctrl-C).)help";

}  // namespace

void AddHorovodRendezvous(CLI::App& app, Run* chosen) {
  CLI::App* const sub =
      app.add_subcommand("horovod-rendezvous", "Run the rendezvous store for Horovod ranks");
  const auto options = std::make_shared<rendezvous::HorovodStoreServerOptions>();
  sub->add_option("--hosts", options->hosts,
                  "Hosts and their numbers of ranks: \"worker-0:2 worker-1:2\"")
      ->envname("SHOAL_HOROVOD_HOSTS")
      ->required();
  sub->add_option("--host", options->host, "IP address to listen on")
      ->envname("HOROVOD_GLOO_RENDEZVOUS_ADDR");
  sub->add_option("--port", options->port, "Port to listen on; 0: any free port")
      ->envname("HOROVOD_GLOO_RENDEZVOUS_PORT");
  sub->footer(kHorovodRendezvousFooter);
  sub->callback([chosen, options] {
    *chosen = [options](const Context& /*context*/) {
      const Status status = rendezvous::RunHorovodStoreServer(*options);
      return status.ok() ? 0 : PrintError(status);
    };
  });
}

}  // namespace shoal::cli
