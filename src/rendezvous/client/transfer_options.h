// Options of a controller's additional connections to a coordinator in no-shared-filesystem mode:
// one per bulk transfer (file_uploader.h, output_downloader.h).
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
  std::function<Result<CoordinatorAddress>()> find;  // called before every dial
  std::string token;
  std::filesystem::path directory;                    // what is sent, or where it is stored
  Duration give_up_after = std::chrono::seconds(30);  // since the connection was lost

  // Callbacks with a hello of this kind and empty heartbeats; the caller sets the others.
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
