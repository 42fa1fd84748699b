// include/shoal/ps.h over src/ps.
#include <shoal/ps.h>

#include <fmt/format.h>

#include <functional>
#include <optional>

#include "base/mutex.h"
#include "bindings/convert.h"
#include "bindings/environment.h"
#include "bindings/owner_process.h"
#include "net/address.h"
#include "ps/client/admin.h"
#include "ps/client/client.h"
#include "ps/server/server.h"

namespace shoal::ps::v1 {
namespace {

using bindings::FromPublic;
using bindings::ToPublic;

// Where the caller says that the servers are.
class AddressMembers final : public ps::Members {
 public:
  explicit AddressMembers(std::function<std::vector<std::string>()> find)
      : find_(std::move(find)) {}
  MemberView Current() override {
    std::vector<std::string> servers = find_();
    const MutexLock lock(mu_);
    if (servers != view_.servers) {
      view_.servers = std::move(servers);
      ++view_.generation;
    }
    return view_;
  }

 private:
  const std::function<std::vector<std::string>()> find_;
  Mutex mu_;
  MemberView view_ GUARDED_BY(mu_);
};

RowFunction Wrap(Function function) {
  return [function = std::move(function)](const ps::FunctionBatch& batch) {
    FunctionBatch view;
    view.keys = batch.keys;
    view.rows = batch.rows;
    view.deltas = batch.deltas;
    view.dim = batch.dim;
    view.argument = batch.argument;
    view.stride = batch.layout.stride;
    return FromPublic(function(view));
  };
}

Status CheckRows(const char* what, size_t got, size_t keys, uint32_t dim) {
  if (got == keys * dim) return {};
  return {Code::kInvalidArgument, fmt::format("{}: got {} values for {} keys, expected {} rows of "
                                              "{}, together {}",
                                              what, got, keys, keys, dim, keys * dim)};
}

DoneCallback Wrap(Callback done) {
  if (!done) return nullptr;
  return [done = std::move(done)](const shoal::Status& status) { done(ToPublic(status)); };
}

Status CheckAddress(size_t index, const std::string& address) {
  const auto parsed = net::ParseHostPort(address);
  const std::string where = fmt::format("servers[{}]", index);
  if (!parsed.ok()) return ToPublic(parsed.status().With(where));
  if (parsed->port != 0) return {};
  return {Code::kInvalidArgument,
          fmt::format("{}: address '{}': got port 0, expected 1 to 65535", where, address)};
}

// The same for all clients of one job's servers.
uint64_t JobOf(ps::Members& members, const std::string& token) {
  const MemberView view = members.Current();
  return std::hash<std::string>()(token + "\n" + (view.servers.empty() ? "" : view.servers[0]));
}

Result<Ticket> ToPublicTicket(shoal::Result<ps::Ticket> ticket) {
  return bindings::ToPublicResult<Ticket>(std::move(ticket), [](const ps::Ticket& t) {
    return Ticket{t.slot, t.generation};
  });
}

ConstRows RowsAt(std::span<const float> values, uint32_t dim) {
  return values.empty() ? ConstRows() : ConstRows(values.data(), dim);
}
Rows RowsAt(std::span<float> values, uint32_t dim) {
  return values.empty() ? Rows() : Rows(values.data(), dim);
}

}  // namespace

// ---- Server -----------------------------------------------------------------------------------

struct Server::Impl {
  bindings::OwnerProcess owner;
  std::unique_ptr<ps::Server> server;
};

Result<ServerOptions> ServerOptions::FromEnvironment() {
  const auto task = bindings::ReadTaskIdentity(bindings::ProcessEnvironment());
  if (!task.ok()) return ToPublic(task.status());
  ServerOptions options;
  options.index = task->index;
  options.servers = bindings::TaskCount(task->cluster, task->role);
  options.workers = bindings::TaskCount(task->cluster, "worker");
  options.token = task->token;
  options.host = task->host;
  options.port = task->port;
  return options;
}

Result<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  ps::ServerOptions inner;
  inner.index = options.index;
  inner.servers = options.servers;
  inner.workers = options.workers;
  inner.token = std::move(options.token);
  inner.listen_host = std::move(options.host);
  inner.port = options.port;
  inner.threads = options.threads;
  inner.checkpoint_dir = std::move(options.checkpoint_dir);
  inner.keep_checkpoints = options.keep_checkpoints;
  inner.restore = options.restore;
  inner.ucx = options.ucx;
  if (!options.functions.empty()) {
    auto functions = std::make_shared<Functions>();
    for (auto& [name, function] : options.functions) {
      if (!function) return Status(Code::kInvalidArgument, "functions: '" + name + "' is empty");
      const shoal::Status added = functions->Add(name, Wrap(std::move(function)));
      if (!added.ok()) return ToPublic(added);
    }
    inner.functions = std::move(functions);
  }
  auto server = ps::Server::Start(std::move(inner));
  if (!server.ok()) return ToPublic(server.status());
  auto impl = std::make_unique<Impl>();
  impl->server = std::move(*server);
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
// A forked child has neither its threads nor the right to its listener: it leaves the copy alone.
Server::~Server() {
  if (!impl_->owner.IsThisProcess()) bindings::Abandon(std::move(impl_));
}
std::string Server::address() const { return impl_->server->address(); }
int64_t Server::restored_checkpoint() const { return impl_->server->restored_checkpoint(); }
Counters Server::counters() const {
  return impl_->owner.IsThisProcess() ? ToPublic(impl_->server->counters()) : Counters();
}

// ---- Client -----------------------------------------------------------------------------------

struct Client::Impl {
  bindings::OwnerProcess owner;
  std::optional<bindings::ConnectedWorker> worker;
  ps::ClientOptions options;
  std::unique_ptr<AddressMembers> members;  // outlives what is below
  std::unique_ptr<ps::Client> client;
  Mutex mu;
  std::unique_ptr<ps::Admin> admin GUARDED_BY(mu);  // made for the first checkpoint

  // At the head of every call: before any lock is taken, which the parent may have held.
  Status Check() const {
    if (owner.IsThisProcess()) return {};
    return ToPublic(owner.Check("this client",
                                "connect in this process, as an observer or with an "
                                "index of its own"));
  }
};

Result<ClientOptions> ClientOptions::FromEnvironment(std::string_view role) {
  const bindings::Environment env = bindings::ProcessEnvironment();
  const auto task = bindings::ReadTaskIdentity(env);
  if (!task.ok()) return ToPublic(task.status());
  auto servers = bindings::AddressesOf(task->cluster, role);
  if (!servers.ok()) return ToPublic(servers.status());
  ClientOptions options;
  options.index = task->index;
  options.token = task->token;
  options.servers = *servers;
  const auto addresses =
      std::make_shared<bindings::RoleAddresses>(env, std::string(role), std::move(*servers));
  options.find_servers = [addresses] { return addresses->Current(); };
  return options;
}

Result<std::unique_ptr<Client>> Client::Connect(ClientOptions options) {
  return Connect(std::move(options), ClientHooks());
}

Result<std::unique_ptr<Client>> Client::Connect(ClientOptions options, ClientHooks hooks) {
  if (options.servers.empty() && !options.find_servers) {
    return Status(Code::kInvalidArgument,
                  "servers: none was named; give their addresses, \"host:port\" in index order");
  }
  for (size_t i = 0; i < options.servers.size() && !options.find_servers; ++i) {
    if (Status bad = CheckAddress(i, options.servers[i]); !bad.ok()) return bad;
  }
  auto impl = std::make_unique<Impl>();
  if (!options.find_servers)
    options.find_servers = [servers = std::move(options.servers)] { return servers; };
  impl->members = std::make_unique<AddressMembers>(std::move(options.find_servers));
  impl->options.index = options.index;
  impl->options.token = std::move(options.token);
  impl->options.consistency = FromPublic(options.consistency);
  impl->options.shared_memory = options.shared_memory;
  impl->options.ucx = options.ucx;
  impl->options.connect_timeout = options.connect_timeout;
  impl->options.reconnect_timeout = options.reconnect_timeout;
  impl->options.window_bytes = options.window_bytes;
  const uint64_t job = JobOf(*impl->members, impl->options.token);
  if (impl->options.index >= 0) {
    const shoal::Status free = bindings::ConnectedWorker::Check(impl->options.index, job);
    if (!free.ok()) return ToPublic(free);
  }
  impl->options.interrupted = std::move(hooks.interrupted);
  // The admin, which takes checkpoints, has options without these.
  ps::ClientOptions inner = impl->options;
  inner.fail_on_data_loss = !hooks.accept_data_loss;
  inner.on_server_restart = std::move(hooks.on_server_restart);
  auto client = ps::Client::Connect(std::move(inner), impl->members.get());
  if (!client.ok()) return ToPublic(client.status());
  impl->client = std::move(*client);
  if (impl->options.index >= 0) impl->worker.emplace(impl->options.index, job);
  return std::unique_ptr<Client>(new Client(std::move(impl)));
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
// A forked child shares its connections with the parent and has none of its threads: closing would
// end the parent's connections, joining would never return.
Client::~Client() {
  if (!impl_->owner.IsThisProcess()) bindings::Abandon(std::move(impl_));
}

Result<Table> Client::CreateTable(const TableSpec& spec, Milliseconds timeout) {
  if (Status other = impl_->Check(); !other.ok()) return other;
  if (spec.pull == WireType::kInt8)
    return Status(Code::kInvalidArgument, "pull: got int8, expected float or bf16");
  return bindings::ToPublicResult<Table>(
      impl_->client->CreateTable(FromPublic(spec), timeout), [&](const TableRef& ref) {
        return Table{ref.id, ref.dim, spec.rows, spec.push, spec.pull};
      });
}

Result<Ticket> Client::Pull(const Table& table, std::span<const Key> keys, std::span<float> out,
                            Callback done) {
  if (Status other = impl_->Check(); !other.ok()) return other;
  if (Status bad = CheckRows("out", out.size(), keys.size(), table.dim); !bad.ok()) return bad;
  return ToPublicTicket(
      impl_->client->Pull(FromPublic(table), keys, RowsAt(out, table.dim), Wrap(std::move(done))));
}

Result<Ticket> Client::Push(const Table& table, std::span<const Key> keys,
                            std::span<const float> deltas, Callback done) {
  if (Status other = impl_->Check(); !other.ok()) return other;
  if (Status bad = CheckRows("deltas", deltas.size(), keys.size(), table.dim); !bad.ok())
    return bad;
  return ToPublicTicket(impl_->client->Push(FromPublic(table), keys, RowsAt(deltas, table.dim),
                                            Wrap(std::move(done))));
}

Result<Ticket> Client::PushPull(const Table& table, std::span<const Key> keys,
                                std::span<const float> deltas, std::span<float> out,
                                Callback done) {
  if (Status other = impl_->Check(); !other.ok()) return other;
  if (Status bad = CheckRows("deltas", deltas.size(), keys.size(), table.dim); !bad.ok())
    return bad;
  if (Status bad = CheckRows("out", out.size(), keys.size(), table.dim); !bad.ok()) return bad;
  return ToPublicTicket(impl_->client->PushPull(FromPublic(table), keys, RowsAt(deltas, table.dim),
                                                RowsAt(out, table.dim), Wrap(std::move(done))));
}

Result<Ticket> Client::Call(const Table& table, std::string_view function,
                            std::span<const Key> keys, std::string_view argument,
                            const CallRows& rows, Callback done) {
  if (Status other = impl_->Check(); !other.ok()) return other;
  if (!rows.deltas.empty()) {
    Status bad = CheckRows("deltas", rows.deltas.size(), keys.size(), table.dim);
    if (!bad.ok()) return bad;
  }
  if (!rows.out.empty()) {
    Status bad = CheckRows("out", rows.out.size(), keys.size(), table.dim);
    if (!bad.ok()) return bad;
  }
  const ps::Client::CallRows inner{RowsAt(rows.deltas, table.dim), RowsAt(rows.out, table.dim)};
  return ToPublicTicket(impl_->client->Call(FromPublic(table), function, keys, argument, inner,
                                            Wrap(std::move(done))));
}

Status Client::Wait(Ticket ticket, Milliseconds timeout) {
  if (Status other = impl_->Check(); !other.ok()) return other;
  return ToPublic(impl_->client->Wait({ticket.slot, ticket.generation}, timeout));
}
bool Client::Done(Ticket ticket) const {
  return !impl_->owner.IsThisProcess() || impl_->client->Done({ticket.slot, ticket.generation});
}
Status Client::Flush(Milliseconds timeout) {
  if (Status other = impl_->Check(); !other.ok()) return other;
  return ToPublic(impl_->client->Flush(timeout));
}
Status Client::Clock(uint64_t n, Milliseconds timeout) {
  if (Status other = impl_->Check(); !other.ok()) return other;
  return ToPublic(impl_->client->Clock(n, timeout));
}
Status Client::Barrier(std::string_view name, Milliseconds timeout) {
  if (Status other = impl_->Check(); !other.ok()) return other;
  return ToPublic(impl_->client->Barrier(name, timeout));
}
Status Client::PutBlob(std::string_view name, std::string_view bytes, Milliseconds timeout) {
  if (Status other = impl_->Check(); !other.ok()) return other;
  return ToPublic(impl_->client->PutBlob(name, bytes, timeout));
}
Result<std::string> Client::GetBlob(std::string_view name, Milliseconds timeout) {
  if (Status other = impl_->Check(); !other.ok()) return other;
  return bindings::ToPublicResult<std::string>(impl_->client->GetBlob(name, timeout),
                                               [](std::string bytes) { return bytes; });
}
Status Client::SetProgress(std::string bytes) {
  if (Status other = impl_->Check(); !other.ok()) return other;
  return ToPublic(impl_->client->SetProgress(std::move(bytes)));
}
Result<std::string> Client::GetProgress(int worker, Milliseconds timeout) {
  if (Status other = impl_->Check(); !other.ok()) return other;
  return bindings::ToPublicResult<std::string>(impl_->client->GetProgress(worker, timeout),
                                               [](std::string bytes) { return bytes; });
}

Result<CheckpointInfo> Client::Checkpoint(Milliseconds timeout) {
  if (Status other = impl_->Check(); !other.ok()) return other;
  const MutexLock lock(impl_->mu);
  if (impl_->admin == nullptr) {
    // The first one connects within its own time.
    ps::ClientOptions options = impl_->options;
    const bool shorter = timeout < options.connect_timeout;
    if (shorter) options.connect_timeout = timeout;
    auto admin = ps::Admin::Connect(std::move(options), impl_->members.get());
    const shoal::Status& failed = admin.status();
    if (shorter && failed.code() == shoal::Code::kUnavailable)
      return Status(Code::kDeadlineExceeded, "checkpoint: " + failed.message());
    if (!admin.ok()) return ToPublic(failed);
    impl_->admin = std::move(*admin);
  }
  return bindings::ToPublicResult<CheckpointInfo>(impl_->admin->Checkpoint(timeout),
                                                  [](const ps::CheckpointInfo& info) {
                                                    return CheckpointInfo{info.id, info.bytes};
                                                  });
}

int64_t Client::restored_checkpoint() const { return impl_->client->restored_checkpoint(); }
int64_t Client::server_restarts() const { return impl_->client->server_restarts(); }
Status Client::Leave(Milliseconds timeout) {
  if (Status other = impl_->Check(); !other.ok()) return other;
  return ToPublic(impl_->client->Leave(timeout));
}
Counters Client::counters() const {
  return impl_->owner.IsThisProcess() ? ToPublic(impl_->client->counters()) : Counters();
}

}  // namespace shoal::ps::v1
