// `shoal horovod-rendezvous`: what role `rendezvous` of a job of framework horovod runs. By itself
// it serves programs that were started by hand.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/terminal/report.h"
#include "rendezvous/framework_services/horovod_server.h"

namespace shoal::cli {
namespace {

constexpr const char* kFooter = R"help(Examples:
  shoal horovod-rendezvous --hosts "127.0.0.1:2" --host 127.0.0.1 --port 9092

A job of framework horovod has one as its role rendezvous (docs/frameworks.md). For ranks that are
started by hand: it goes on until it is ended (Ctrl-C).)help";

}  // namespace

void AddHorovodRendezvous(CLI::App& app, Run* chosen) {
  CLI::App* const sub =
      app.add_subcommand("horovod-rendezvous", "Be the store by which Horovod's ranks meet");
  const auto options = std::make_shared<rendezvous::HorovodStoreServerOptions>();
  sub->add_option("--hosts", options->hosts, "Who has how many ranks: \"worker-0:2 worker-1:2\"")
      ->envname("SHOAL_HOROVOD_HOSTS")
      ->required();
  sub->add_option("--host", options->host, "Numeric address to listen at")
      ->envname("HOROVOD_GLOO_RENDEZVOUS_ADDR");
  sub->add_option("--port", options->port, "Port to listen at; 0 for any")
      ->envname("HOROVOD_GLOO_RENDEZVOUS_PORT");
  sub->footer(kFooter);
  sub->callback([chosen, options] {
    *chosen = [options](const Context& /*context*/) {
      const Status status = rendezvous::RunHorovodStoreServer(*options);
      return status.ok() ? 0 : PrintError(status);
    };
  });
}

}  // namespace shoal::cli
