#include "ps/server/server.h"

#include <fmt/format.h>

#include "net/address.h"
#include "ps/server/server_impl.h"

namespace shoal::ps {

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  auto impl = std::make_unique<Impl>();
  TRY_ASSIGN(impl->core, ServerCore::Make(std::move(options)));
  const ServerOptions& made = impl->core->options();
  if (made.replicas > 1) impl->host = ReplicaHost::Make(impl->core);
  TRY_ASSIGN(impl->tcp, TcpServer::Start(impl->core.get()));
  if (made.hub != nullptr) TRY(made.hub->Register(made.inproc_name, impl->core));
  std::unique_ptr<Server> server(new Server(std::move(impl)));
  if (server->impl_->host != nullptr) server->impl_->host->Start(server->address());
  if (made.index == kLeader && made.members != nullptr && made.balance_every > Duration{}) {
    server->impl_->balancer =
        std::make_unique<AutoBalancer>(ClientOptionsOf(made), made.members, made.balance_every);
  }
  return server;
}

ClientOptions ClientOptionsOf(const ServerOptions& options) {
  ClientOptions client;
  client.index = kObserver;
  client.token = options.token;
  client.hub = options.hub;
  client.shared_memory = options.shared_memory;
  client.connect_timeout = client.reconnect_timeout = std::chrono::seconds(5);
  return client;
}

void Server::Impl::Stop() {
  if (tcp == nullptr) return;
  balancer.reset();
  if (host != nullptr) host->Stop();
  core->Stop();
  tcp.reset();
  const ServerOptions& options = core->options();
  if (options.hub != nullptr) options.hub->Unregister(options.inproc_name);
}

Server::~Server() { impl_->Stop(); }

std::string Server::address() const {
  const ServerOptions& options = impl_->core->options();
  if (options.listen_host.empty()) return inproc_address();
  return net::FormatHostPort(options.listen_host, port());
}

std::string Server::inproc_address() const {
  return "inproc:" + impl_->core->options().inproc_name;
}
uint16_t Server::port() const { return impl_->tcp == nullptr ? 0 : impl_->tcp->port(); }
int64_t Server::restored_checkpoint() const { return impl_->core->checkpoints().restored(); }
uint64_t Server::instance() const { return impl_->core->instance(); }
void Server::ReportDead(int worker) {
  if (impl_->host == nullptr) return impl_->core->ReportDead(worker);
  impl_->host->ReportDead(worker);
}
std::vector<std::shared_ptr<ServerCore>> Server::Impl::Cores() const {
  std::vector<std::shared_ptr<ServerCore>> cores = {core};
  if (host == nullptr) return cores;
  for (auto& other : host->OtherCores()) cores.push_back(std::move(other));
  return cores;
}

Counters Server::counters() const {
  Counters all;
  for (const auto& core : impl_->Cores()) AddCounters(core->counters(), &all);
  return all;
}

std::vector<HotKey> Server::hot_keys(size_t n) const {
  std::vector<std::vector<HotKey>> by_server;
  for (const auto& core : impl_->Cores()) by_server.push_back(core->hot_keys(n));
  return MergeHotKeys(by_server, n);
}

ServerMetrics Server::metrics() const {
  const auto cores = impl_->Cores();
  ServerMetrics all = cores[0]->metrics();
  for (size_t i = 1; i < cores.size(); ++i) AddMetrics(cores[i]->metrics(), &all);
  if (cores.size() > 1) all.hot_keys = hot_keys(16);
  return all;
}
std::vector<int> Server::primary_of() const {
  if (impl_->host == nullptr) return {impl_->core->options().index};
  return impl_->host->primary_of();
}
std::vector<int> Server::backup_of() const {
  return impl_->host == nullptr ? std::vector<int>() : impl_->host->backup_of();
}
bool Server::fully_replicated() const {
  return impl_->host != nullptr && impl_->host->fully_replicated();
}

}  // namespace shoal::ps
