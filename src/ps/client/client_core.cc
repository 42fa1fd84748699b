#include "ps/client/client_core.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/id.h"
#include "base/log.h"
#include "base/mutex.h"
#include "ps/wire/spec_codec.h"

namespace shoal::ps {

Status RowsAreLost(int server) {
  return DataLoss(
      fmt::format("server {} died and came back empty, so the rows on it are lost: there was no "
                  "checkpoint to restore them from and no second copy; take checkpoints, keep two "
                  "copies, or accept the loss when connecting and make good for it",
                  server));
}

ClientCore::ClientCore(ClientOptions options, Members* members)
    : options_(std::move(options)),
      members_(members),
      dialer_(&options_, members),
      gate_([this](int64_t checkpoint) { markers_.SendToAll(checkpoint); }) {}

ClientCore::~ClientCore() {
  reconnector_.Stop();
  Cancel();
  redirector_.Stop();
  Cancel();  // what it has connected meanwhile
}

void ClientCore::Cancel() {
  for (auto& channel : channels_) channel->Close();
  for (auto& channel : channels_) channel->Fail(Cancelled("the client is closed"));
}

std::unique_ptr<Channel> ClientCore::MakeChannel(int server, uint32_t lane) {
  Channel::Hooks hooks;
  hooks.lost = [this](Channel* channel) { reconnector_.OnLost(channel); };
  hooks.marker_request = [this](int64_t checkpoint) {
    if (options_.index >= 0) gate_.RequestMarker(checkpoint);
  };
  hooks.marker_answered = [this](int64_t checkpoint, bool failed) {
    markers_.OnAnswered(checkpoint, failed);
  };
  hooks.moved = [this](Redirect redirect) { markers_.OnMoved(std::move(redirect)); };
  hooks.shards_moved = [this](int from) { redirector_.OnShardsMoved(from); };
  hooks.interrupted = options_.interrupted;
  return std::make_unique<Channel>(server, lane, options_.window_bytes, &tickets_,
                                   std::move(hooks));
}

Status ClientCore::Connect() {
  // A marker that is asked for meanwhile goes out to all servers when all are there.
  gate_.Enter();
  Status status = ConnectAll();
  gate_.Leave();
  if (status.ok()) reconnector_.Start();
  return status;
}

void ClientCore::NoteInstance(int server, const Welcome& welcome) {
  {
    const MutexLock lock(mu_);
    uint64_t& known = instances_[server];
    if (known == welcome.instance) return;
    const bool first = known == 0;
    known = welcome.instance;
    if (first) return;
  }
  ++restarts_;
  LogWarning("server {} came back, {}", server,
             welcome.restored_checkpoint < 0
                 ? std::string("empty")
                 : fmt::format("restored from checkpoint {}", welcome.restored_checkpoint));
  if (options_.on_server_restart) options_.on_server_restart(server, welcome.restored_checkpoint);
  if (!options_.fail_on_data_loss || welcome.restored_checkpoint >= 0) return;
  if (server != kLeader && !router_.OwnsShards(server)) return;  // it had no rows
  FailForGood(RowsAreLost(server));
}

void ClientCore::FailForGood(const Status& why) {
  {
    const MutexLock lock(mu_);
    failed_ = why;
  }
  // A thread that is connecting a server meanwhile has seen that, or has published its channels.
  { const MutexLock grow(grow_mu_); }
  // Closed first: requests that are queued point to memory that is the caller's again afterwards.
  for (auto& channel : channels_) channel->Close();
  for (auto& channel : channels_) channel->Fail(why);
}

std::vector<std::string> ClientCore::TableSpecs() {
  const MutexLock lock(mu_);
  std::vector<std::string> specs;
  for (const auto& [id, spec] : table_specs_) specs.push_back(spec);
  return specs;
}

Result<TableRef> ClientCore::CreateTable(const TableSpec& spec, TimePoint deadline) {
  TRY(Validate(spec));
  std::string body;
  EncodeSpec(spec, &body);
  TableRef table{TableIdOf(spec.name), spec.dim, spec.key_space, spec.rows};
  FrameHeader head;
  head.type = FrameType::kCreateTable;
  std::set<Channel*> asked;
  // A server that is connected meanwhile is told by the thread that connects it, or here.
  for (;;) {
    std::vector<Channel*> news = Connected();
    std::erase_if(news, [&](Channel* channel) { return !asked.insert(channel).second; });
    if (news.empty()) return table;
    TRY(SendRequestToEach(news, head, body, deadline).With("table '" + spec.name + "'"));
    router_.NoteTable(table.id, table.key_space);
    const MutexLock lock(mu_);
    table_specs_[table.id] = body;
  }
}

}  // namespace shoal::ps
