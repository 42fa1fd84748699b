// A server's endpoint for clients of its own host: a unix socket beside the TCP one, named after
// its address, over which the handshake runs and shared memory is handed over.
//
// Names are abstract, so that they live in the network namespace, where the TCP ports are, and end
// with the server. Used by tcp_server.cc and tcp_connection.cc (server), client_connection.cc and
// tcp_transport.cc (client).
#pragma once

#include <string>
#include <string_view>

#include "base/file.h"
#include "base/status.h"

namespace shoal::ps {

// A non-blocking listener beside the bound TCP socket `tcp`.
Result<UniqueFd> ListenLocal(int tcp);

// A connected, non-blocking socket to the server that listens on the TCP address "HOST:PORT", if it
// is on this host, in this network namespace and of this user; NotFound if not. Never waits, except
// for the resolver.
Result<UniqueFd> ConnectLocal(const std::string& address);

bool IsLocalSocket(int fd);

// Sends all of `bytes` with a descriptor beside them. Never waits.
Status SendWithDescriptor(int fd, std::string_view bytes, int descriptor);
// Like ReceiveSome; a descriptor that comes along is put into *descriptor, more are closed. -1 with
// errno EMFILE: one came, and this process may not have another.
long ReceiveWithDescriptor(int fd, char* to, size_t size, UniqueFd* descriptor);

// Wakes the thread that waits at the other end. A wake-up that is still unread covers further ones.
void WakeOtherEnd(int fd);
// Reads all wake-ups; false when the other end is gone.
bool DrainWakeUps(int fd);

}  // namespace shoal::ps
