// Tells the service manager that started this process how far it is (sd_notify(3)): a datagram to
// the socket of $NOTIFY_SOCKET. Nothing without one.
#pragma once

#include <string_view>

namespace shoal::cli {

// `state`: "READY=1", "STOPPING=1". Errors are ignored: the manager has time limits of its own.
void NotifyServiceManager(std::string_view state);

}  // namespace shoal::cli
