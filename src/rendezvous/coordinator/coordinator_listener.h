// The port at which a coordinator accepts launchers and controllers. Used by coordinator.cc.
#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "net/event_loop.h"
#include "net/websocket.h"
#include "rendezvous/coordinator/coordinator.h"

namespace shoal::rendezvous {

// Listens at the port of the options; where that is 0, at the port of an earlier coordinator of the
// job if it is free, so that launchers find it again at once, else at any. `on_connection` gets
// each connection, before any proof of the token.
Result<std::unique_ptr<net::WebSocketServer>> ListenForConnections(
    net::Loop* loop, const CoordinatorOptions& options, int tasks,
    const std::function<void(std::unique_ptr<net::WebSocket>)>& on_connection);

}  // namespace shoal::rendezvous
