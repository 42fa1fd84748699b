// What a controller's further lines to a coordinator that does not see its directory have in
// common: one for each thing that is large (file_giver.h, output_fetch.h).
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "rendezvous/protocol/coordinator_connection.h"

namespace shoal::rendezvous {

struct TransferOptions {
  std::function<Result<CoordinatorAddress>()> find;  // asked before every dial
  std::string token;
  std::filesystem::path directory;                    // what is sent, or where it comes
  Duration give_up_after = std::chrono::seconds(30);  // since the line was lost

  // Callbacks: a hello of this kind, and heartbeats; the others are still to be set.
  CoordinatorConnectionOptions Options() const {
    CoordinatorConnectionOptions options;
    options.find = find;
    options.token = token;
    options.give_up_after = give_up_after;
    return options;
  }
  static CoordinatorConnectionCallbacks Callbacks(std::string kind) {
    CoordinatorConnectionCallbacks calls;
    calls.hello = [kind = std::move(kind)] { return json::object{{"kind", kind}}; };
    calls.heartbeat = [] { return json::object(); };
    return calls;
  }
};

}  // namespace shoal::rendezvous
