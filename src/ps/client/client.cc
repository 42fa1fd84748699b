#include "ps/client/client.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "ps/client/blob_client.h"
#include "ps/client/client_core.h"

namespace shoal::ps {
namespace {

// Never, for a timeout that the clock does not reach.
TimePoint DeadlineIn(Duration timeout) {
  const TimePoint now = RealClock::Get()->Now();
  return timeout < TimePoint::max() - now ? now + timeout : TimePoint::max();
}

}  // namespace

Client::Client(std::shared_ptr<ClientCore> core) : core_(std::move(core)) {}
Client::~Client() = default;

Result<std::unique_ptr<Client>> Client::Connect(ClientOptions options, Members* members) {
  auto core = std::make_shared<ClientCore>(std::move(options), members);
  TRY(core->Connect());
  return std::unique_ptr<Client>(new Client(std::move(core)));
}

Result<TableRef> Client::CreateTable(const TableSpec& spec, Duration timeout) {
  return core_->CreateTable(spec, DeadlineIn(timeout));
}

Result<Ticket> Client::Pull(const TableRef& table, std::span<const Key> keys, Rows out,
                            DoneCallback done) {
  return core_->rows().Issue({FrameType::kPull, &table, keys, {}, out, std::move(done), {}, {}});
}

Result<Ticket> Client::Push(const TableRef& table, std::span<const Key> keys, ConstRows deltas,
                            DoneCallback done) {
  return core_->rows().Issue({FrameType::kPush, &table, keys, deltas, {}, std::move(done), {}, {}});
}

Result<Ticket> Client::Push(const TableRef& table, std::span<const Key> keys, Rows deltas,
                            DoneCallback done) {
  return core_->rows().Issue(
      {FrameType::kPush, &table, keys, deltas.view(), {}, std::move(done), deltas, {}});
}

Result<Ticket> Client::PushPull(const TableRef& table, std::span<const Key> keys, ConstRows deltas,
                                Rows out, DoneCallback done) {
  return core_->rows().Issue(
      {FrameType::kPushPull, &table, keys, deltas, out, std::move(done), {}, {}});
}

Result<Ticket> Client::PushPull(const TableRef& table, std::span<const Key> keys, Rows deltas,
                                Rows out, DoneCallback done) {
  return core_->rows().Issue(
      {FrameType::kPushPull, &table, keys, deltas.view(), out, std::move(done), deltas, {}});
}

Result<Ticket> Client::Call(const TableRef& table, std::string_view function,
                            std::span<const Key> keys, std::string_view argument,
                            const CallRows& rows, DoneCallback done) {
  if (function.empty() || function.size() > kMaxNameBytes) {
    return InvalidArgument(fmt::format("function: got a name of {} bytes, expected 1 to {}",
                                       function.size(), kMaxNameBytes));
  }
  if (argument.size() > kMaxFunctionArgument) {
    return InvalidArgument(
        fmt::format("function '{}': got an argument of {} bytes, expected up "
                    "to {}",
                    function, argument.size(), kMaxFunctionArgument));
  }
  std::string both;
  ByteWriter writer(&both);
  writer.PutString(function);
  writer.PutRaw(argument.data(), argument.size());
  return core_->rows().Issue(
      {FrameType::kCall, &table, keys, rows.deltas, rows.out, std::move(done), {}, both});
}

Status Client::Wait(Ticket ticket, Duration timeout) {
  return core_->rows().Wait(ticket, DeadlineIn(timeout));
}
bool Client::Done(Ticket ticket) const { return core_->tickets().Done(ticket); }
Status Client::Flush(Duration timeout) { return core_->rows().Flush(DeadlineIn(timeout)); }

Status Client::PullRange(const TableRef& table, uint64_t first, uint64_t count, Rows out,
                         Duration timeout) {
  return core_->rows().PullRange(table, first, count, out, DeadlineIn(timeout));
}

Status Client::Clock(uint64_t n, Duration timeout) {
  return core_->worker().Clock(n, DeadlineIn(timeout));
}

Status Client::Barrier(std::string_view name, Duration timeout) {
  if (name.size() > kMaxNameBytes) return InvalidArgument("a barrier's name is too long");
  return core_->worker().Barrier(std::string(name), DeadlineIn(timeout));
}

Status Client::PutBlob(std::string_view name, std::string_view bytes, Duration timeout) {
  return BlobClient(&core_->leader()).Put(name, bytes, DeadlineIn(timeout));
}

Result<std::string> Client::GetBlob(std::string_view name, Duration timeout) {
  return BlobClient(&core_->leader()).Get(name, DeadlineIn(timeout));
}

Result<std::vector<std::string>> Client::ListBlobs(std::string_view prefix, Duration timeout) {
  std::vector<std::string> names;
  TRY_ASSIGN(const std::string reply, SendRequest(&core_->leader(), FrameType::kListBlobs, 0,
                                                  std::string(prefix), DeadlineIn(timeout)));
  ByteReader reader(reply);
  while (reader.remaining() > 0) {
    std::string_view name;
    TRY(reader.GetString(&name, kMaxNameBytes));
    names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Status Client::DeleteBlob(std::string_view name, Duration timeout) {
  return SendRequest(&core_->leader(), FrameType::kDeleteBlob, 0, std::string(name),
                     DeadlineIn(timeout))
      .status();
}

Status Client::SetProgress(std::string bytes) {
  return core_->worker().SetProgress(std::move(bytes));
}

Result<std::string> Client::GetProgress(int worker, Duration timeout) {
  if (worker < 0) return InvalidArgument("worker: expected 0 or more");
  return SendRequest(&core_->leader(), FrameType::kGetProgress, static_cast<uint64_t>(worker), {},
                     DeadlineIn(timeout));
}

Client::IssueScope::IssueScope(Client& client) : core_(client.core_.get()) {
  core_->gate().Enter();
}
Client::IssueScope::~IssueScope() { core_->gate().Leave(); }

Status Client::Leave(Duration timeout) { return core_->worker().Leave(DeadlineIn(timeout)); }
int64_t Client::server_restarts() const { return core_->restarts(); }
int Client::ServerOf(const TableRef& table, Key key) const {
  return core_->router().ServerOf(table.key_space, key);
}
int64_t Client::restored_checkpoint() const { return core_->restored_checkpoint(); }

Counters Client::counters() const {
  Counters sum;
  for (const auto& channel : core_->channels()) {
    const Counters part = channel->counters();
    sum.requests += part.requests;
    sum.rows_pushed += part.rows_pushed;
    sum.rows_pulled += part.rows_pulled;
    sum.bytes_pushed += part.bytes_pushed;
    sum.bytes_pulled += part.bytes_pulled;
    sum.key_bytes += part.key_bytes;
  }
  return sum;
}

}  // namespace shoal::ps
