#include "ps/server.h"

#include <fmt/format.h>

#include "net/address.h"
#include "ps/replica_host.h"
#include "ps/server_core.h"
#include "ps/tcp_server.h"

namespace shoal::ps {

struct Server::Impl {
  std::shared_ptr<ServerCore> core;   // that listens, and serves its own index at first
  std::shared_ptr<ReplicaHost> host;  // null without copies
  std::unique_ptr<TcpServer> tcp;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  auto impl = std::make_unique<Impl>();
  TRY_ASSIGN(impl->core, ServerCore::Make(std::move(options)));
  const ServerOptions& made = impl->core->options();
  if (made.copies > 1) impl->host = ReplicaHost::Make(impl->core);
  TRY_ASSIGN(impl->tcp, TcpServer::Start(impl->core.get()));
  if (made.hub != nullptr) TRY(made.hub->Register(made.inproc_name, impl->core));
  std::unique_ptr<Server> server(new Server(std::move(impl)));
  if (server->impl_->host != nullptr) server->impl_->host->Start(server->address());
  return server;
}

Server::~Server() {
  const ServerOptions& options = impl_->core->options();
  if (impl_->host != nullptr) impl_->host->Stop();
  impl_->core->Stop();
  impl_->tcp.reset();
  if (options.hub != nullptr) options.hub->Unregister(options.inproc_name);
}

std::string Server::address() const {
  const ServerOptions& options = impl_->core->options();
  if (options.listen_host.empty()) return inproc_address();
  return net::FormatHostPort(options.listen_host, port());
}

std::string Server::inproc_address() const {
  return "inproc:" + impl_->core->options().inproc_name;
}
uint16_t Server::port() const { return impl_->tcp->port(); }
int64_t Server::restored_checkpoint() const { return impl_->core->restored_checkpoint(); }
uint64_t Server::incarnation() const { return impl_->core->incarnation(); }
void Server::ReportDead(int worker) {
  if (impl_->host == nullptr) return impl_->core->ReportDead(worker);
  impl_->host->ReportDead(worker);
}
Counters Server::counters() const { return impl_->core->counters(); }
std::vector<HotKey> Server::hot_keys(size_t n) const { return impl_->core->hot_keys(n); }
ServerMetrics Server::metrics() const { return impl_->core->metrics(); }
std::vector<int> Server::serves() const {
  if (impl_->host == nullptr) return {impl_->core->options().index};
  return impl_->host->serves();
}
std::vector<int> Server::keeps() const {
  return impl_->host == nullptr ? std::vector<int>() : impl_->host->keeps();
}
bool Server::copied() const { return impl_->host != nullptr && impl_->host->copied(); }

}  // namespace shoal::ps
