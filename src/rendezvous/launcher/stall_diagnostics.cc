#include "rendezvous/launcher/stall_diagnostics.h"

#include <algorithm>

#include "host/process/process_activity.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {
namespace {

constexpr size_t kToldPlaces = 6;  // of one process's threads

json::object ToJson(const host::ProcessTrace& trace) {
  json::array waits;
  for (const host::ThreadWait& one : trace.waits) {
    if (waits.size() == kToldPlaces) break;
    waits.push_back({{"in", CleanText(one.where, 64)}, {"threads", one.threads}});
  }
  return {{"pid", trace.pid},
          {"name", CleanText(trace.name, 32)},
          {"state", std::string(1, trace.state)},
          {"cpu_seconds", trace.cpu_seconds},
          {"threads", trace.threads},
          {"waits", std::move(waits)}};
}

json::object ToJson(const host::TcpConnection& one) {
  return {{"local", one.local},
          {"peer", one.peer},
          {"state", one.state},
          {"unread", one.unread},
          {"unsent", one.unsent}};
}

}  // namespace

json::object CollectStallDiagnostics(const std::vector<pid_t>& pids) {
  json::object body;
  const size_t told = std::min(pids.size(), kMaxReportedProcesses);
  json::array processes;
  for (const host::ProcessTrace& trace :
       host::TraceProcesses({pids.begin(), pids.begin() + static_cast<ptrdiff_t>(told)})) {
    processes.push_back(ToJson(trace));
  }
  body["processes"] = std::move(processes);
  if (pids.size() > told) body["more_processes"] = pids.size() - told;
  auto connections = host::TcpConnectionsOf(pids);
  if (!connections.ok()) {
    body["connections_unknown"] = CleanText(connections.status().message(), 200);
    return body;
  }
  // Connections with unread or unsent bytes first: they say most.
  std::stable_sort(connections->begin(), connections->end(),
                   [](const host::TcpConnection& a, const host::TcpConnection& b) {
                     return a.unread + a.unsent > b.unread + b.unsent;
                   });
  json::array shown;
  for (const host::TcpConnection& one : *connections) {
    if (shown.size() == kMaxReportedConnections) break;
    shown.push_back(ToJson(one));
  }
  if (connections->size() > shown.size()) {
    body["more_connections"] = connections->size() - shown.size();
  }
  body["connections"] = std::move(shown);
  return body;
}

}  // namespace shoal::rendezvous
