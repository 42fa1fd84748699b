#include "ps/server.h"

#include <fmt/format.h>

#include "net/address.h"
#include "ps/server_core.h"
#include "ps/tcp_server.h"

namespace shoal::ps {

struct Server::Impl {
  std::shared_ptr<ServerCore> core;
  std::unique_ptr<TcpServer> tcp;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  auto impl = std::make_unique<Impl>();
  TRY_ASSIGN(impl->core, ServerCore::Make(std::move(options)));
  TRY_ASSIGN(impl->tcp, TcpServer::Start(impl->core.get()));
  const ServerOptions& made = impl->core->options();
  if (made.hub != nullptr) TRY(made.hub->Register(made.inproc_name, impl->core));
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::~Server() {
  const ServerOptions& options = impl_->core->options();
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
void Server::ReportDead(int worker) { impl_->core->ReportDead(worker); }
Counters Server::counters() const { return impl_->core->counters(); }
std::vector<HotKey> Server::hot_keys(size_t n) const { return impl_->core->hot_keys(n); }
ServerMetrics Server::metrics() const { return impl_->core->metrics(); }

}  // namespace shoal::ps
