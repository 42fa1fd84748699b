#include "ps/client/client_core.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/id.h"
#include "base/log.h"
#include "ps/wire/spec_codec.h"

namespace shoal::ps {
namespace {

constexpr Duration kFirstBackoff = std::chrono::milliseconds(5);
constexpr Duration kLongestBackoff = std::chrono::milliseconds(200);
constexpr Duration kShortestDial = std::chrono::milliseconds(50);
constexpr Duration kGoneAfter = std::chrono::milliseconds(500);
constexpr Duration kLookAtMembers = std::chrono::seconds(1);
constexpr Duration kLastWord = std::chrono::milliseconds(200);  // to learn which workers are late

uint64_t FreshSession() {
  const uint64_t seed = RandomSeed();
  return seed == 0 ? 1 : seed;
}

// Worth another try: no server there, a timeout, a server on its way down, or one that asks to
// wait.
bool IsPassing(const Status& status) {
  return status.retryable() || status.code() == Code::kDeadlineExceeded;
}

}  // namespace

ClientCore::ClientCore(ClientOptions options, Members* members)
    : options_(std::move(options)),
      members_(members),
      session_(FreshSession()),
      tcp_(MakeTcpTransport(options_.token, options_.shared_memory, options_.ucx)),
      gate_([this](int64_t checkpoint) { InjectMarkers(checkpoint); }) {
  if (options_.hub != nullptr) inproc_ = MakeInProcessTransport(options_.hub, options_.token);
}

ClientCore::~ClientCore() {
  {
    std::lock_guard lock(mu_);
    stop_ = true;
  }
  lost_cv_.notify_all();
  if (dialer_.joinable()) dialer_.join();
  Cancel();
  redirector_.Stop();
  Cancel();  // what it has connected meanwhile
}

void ClientCore::Cancel() {
  for (auto& channel : channels_) channel->Close();
  for (auto& channel : channels_) channel->Fail(Cancelled("the client is closed"));
}

Result<OpenedConnection> ClientCore::DialOnce(int server, uint32_t lane, uint64_t first_seq,
                                              std::string* address, Duration timeout) {
  const MemberView view = members_->Current();
  Status status = Unavailable(fmt::format("server {} has no address yet", server));
  // With copies a server's rows may be with another one: first where they were last.
  const auto index = static_cast<size_t>(server);
  std::atomic<size_t>& place = server_slots_[index].place;
  const size_t first = place == SIZE_MAX ? index : place.load();
  const bool anywhere = view.replicas > 1;
  const size_t places = anywhere ? view.servers.size() : (index < view.servers.size() ? 1 : 0);
  for (size_t step = 0; step < places; ++step) {
    const size_t at = (first + step) % view.servers.size();
    if (view.servers[at].empty()) continue;
    *address = view.servers[at];
    const Duration longest = places > 1 ? kQuickDial : kDialTimeout;
    auto dialled = DialAt(server, lane, first_seq, *address,
                          std::clamp<Duration>(timeout, kShortestDial, longest));
    if (dialled.ok()) place = at;
    if (dialled.ok() || !IsPassing(dialled.status())) return dialled;
    status = dialled.status();
  }
  return status;
}

Result<OpenedConnection> ClientCore::DialAt(int server, uint32_t lane, uint64_t first_seq,
                                            const std::string& address, Duration timeout) {
  Hello hello;
  hello.server = server;
  hello.client = options_.index;
  hello.session = session_;
  hello.lane = lane;
  hello.first_seq = first_seq;
  hello.clock = clock_;
  const bool local = address.starts_with("inproc:");
  if (local && inproc_ == nullptr) {
    return FailedPrecondition(fmt::format("{}: this client was given no hub", address));
  }
  return (local ? inproc_ : tcp_)->Dial(address, hello, timeout);
}

bool ClientCore::WaitForStop(Duration time) {
  if (options_.interrupted && options_.interrupted()) return true;
  std::unique_lock lock(mu_);
  return lost_cv_.wait_for(lock, time, [this] { return stop_; });
}

Result<OpenedConnection> ClientCore::DialUntil(int server, uint32_t lane, uint64_t first_seq,
                                               TimePoint deadline, std::string* address) {
  for (Duration backoff = kFirstBackoff;; backoff = std::min(backoff * 2, kLongestBackoff)) {
    auto dialled = DialOnce(server, lane, first_seq, address, deadline - RealClock::Get()->Now());
    if (dialled.ok() || !IsPassing(dialled.status())) return dialled;
    if (WaitForStop(std::min<Duration>(backoff, deadline - RealClock::Get()->Now()))) {
      return Cancelled(fmt::format("connecting to server {} was interrupted", server));
    }
    if (RealClock::Get()->Now() >= deadline) {
      return Unavailable(
          fmt::format("cannot reach server {}: {}", server, dialled.status().message()));
    }
  }
}

std::unique_ptr<Channel> ClientCore::MakeChannel(int server, uint32_t lane) {
  Channel::Hooks hooks;
  hooks.lost = [this](Channel* channel) { OnLost(channel); };
  hooks.marker_request = [this](int64_t checkpoint) {
    if (options_.index >= 0) gate_.RequestMarker(checkpoint);
  };
  hooks.marker_answered = [this](int64_t checkpoint, bool failed) {
    OnMarkerAnswered(checkpoint, failed);
  };
  hooks.moved = [this](Redirect redirect) { OnMoved(std::move(redirect)); };
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
  if (status.ok()) dialer_ = std::thread([this] { Redial(); });
  return status;
}

void ClientCore::OnLost(Channel* channel) {
  {
    // Within the lock: once it is released, the client may be destroyed.
    std::lock_guard lock(mu_);
    lost_.emplace(channel, RealClock::Get()->Now());
    lost_cv_.notify_all();
  }
}

void ClientCore::DisconnectOldAddresses() {
  const MemberView view = members_->Current();
  for (const auto& channel : channels_) {
    const size_t place = server_slots_[static_cast<size_t>(channel->server())].place;
    if (place >= view.servers.size() || view.servers[place].empty()) continue;
    channel->DisconnectUnlessAt(view.servers[place]);
  }
}

void ClientCore::Redial() {
  Duration backoff = kFirstBackoff;
  for (;;) {
    std::map<Channel*, TimePoint> lost;
    {
      std::unique_lock lock(mu_);
      const bool some =
          lost_cv_.wait_for(lock, kLookAtMembers, [this] { return stop_ || !lost_.empty(); });
      if (stop_) return;
      lost = lost_;
      lock.unlock();
      if (!some) DisconnectOldAddresses();
      if (!some) continue;
    }
    bool all = true;
    for (const auto& [channel, since] : lost) {
      {
        // Out of the list before it is up: its next loss must not be overlooked.
        std::lock_guard lock(mu_);
        if (stop_) return;
        lost_.erase(channel);
      }
      if (Restore(channel, since)) continue;
      std::lock_guard lock(mu_);
      lost_.emplace(channel, since);
      all = false;
    }
    backoff = all ? kFirstBackoff : std::min(backoff * 2, kLongestBackoff);
    if (all) continue;
    std::unique_lock lock(mu_);
    lost_cv_.wait_for(lock, backoff, [this] { return stop_; });
  }
}

// True when there is nothing more to do for this channel.
bool ClientCore::Restore(Channel* channel, TimePoint lost_at) {
  if (channel->suspended()) return true;
  std::string address;
  auto dialled = DialOnce(channel->server(), channel->lane(), channel->first_unanswered(), &address,
                          lost_at + options_.reconnect_timeout - RealClock::Get()->Now());
  Status status = dialled.status();
  if (dialled.ok()) status = CheckWelcome(channel->server(), dialled->welcome).With(address);
  if (status.ok()) {
    const Welcome welcome = dialled->welcome;
    // The callback runs before the answers: a caller that sees an answer of the new instance can
    // know it.
    NoteInstance(channel->server(), welcome);
    channel->Resume(address, std::move(dialled).value(), TableSpecs());
    if (welcome.ownership != known_shards().version()) redirector_.OnShardsMoved(channel->server());
    return true;
  }
  const Duration away = RealClock::Get()->Now() - lost_at;
  // Perhaps it has left and we had not let go of it yet.
  if (away > kGoneAfter && IsUnneeded(channel->server())) redirector_.RequestCleanup();
  if (IsPassing(status) && away < options_.reconnect_timeout) return false;
  channel->Fail(Status(IsPassing(status) ? Code::kUnavailable : status.code(),
                       fmt::format("server {} has been away for {}: {}", channel->server(),
                                   FormatDuration(away), status.message())));
  return true;
}

void ClientCore::NoteInstance(int server, const Welcome& welcome) {
  {
    std::lock_guard lock(mu_);
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
  {
    std::lock_guard lock(mu_);
    if (server != kLeader && !OwnersOf(known_).contains(server)) return;  // it had no rows
  }
  FailForGood(RowsAreLost(server));
}

Status ClientCore::RowsAreLost(int server) {
  return DataLoss(
      fmt::format("server {} died and came back empty, so the rows on it are lost: there was no "
                  "checkpoint to restore them from and no second copy; take checkpoints, keep two "
                  "copies, or accept the loss when connecting and make good for it",
                  server));
}

void ClientCore::FailForGood(const Status& why) {
  {
    std::lock_guard lock(mu_);
    failed_ = why;
  }
  // A thread that is connecting a server meanwhile has seen that, or has published its channels.
  { std::lock_guard grow(grow_mu_); }
  // Closed first: requests that are queued point to memory that is the caller's again afterwards.
  for (auto& channel : channels_) channel->Close();
  for (auto& channel : channels_) channel->Fail(why);
}

std::vector<std::string> ClientCore::TableSpecs() {
  std::lock_guard lock(mu_);
  std::vector<std::string> specs;
  for (const auto& [id, spec] : table_specs_) specs.push_back(spec);
  return specs;
}

void ClientCore::InjectMarkers(int64_t checkpoint) {
  std::lock_guard marking(markers_mu_);
  if (checkpoint <= last_marked_) return;
  // First, so that a refusal is either seen on its redirect below, or says itself that it is late.
  SetSettling({checkpoint, 1, false});
  if (redirector_.DefersMarker(checkpoint)) return SetSettling({});
  last_marked_ = checkpoint;
  std::string progress;
  {
    std::lock_guard lock(progress_mu_);
    progress = progress_;
  }
  for (const auto& channel : channels_) {
    const bool leads = channel->server() == kLeader && channel->lane() == 0;
    MarkChannel(channel.get(), checkpoint, leads ? progress : std::string());
  }
  OnMarkerAnswered(checkpoint, false);
}

void ClientCore::MarkChannel(Channel* channel, int64_t checkpoint, const std::string& progress) {
  FrameHeader head;
  head.type = FrameType::kMarker;
  head.argument = static_cast<uint64_t>(checkpoint);
  {
    std::lock_guard lock(settling_mu_);
    if (settling_.checkpoint == checkpoint) ++settling_.markers;
  }
  if (!channel->SendMarker(head, progress)) OnMarkerAnswered(checkpoint, false);
}

void ClientCore::SetSettling(const Settling& now) {
  std::lock_guard lock(settling_mu_);
  settling_ = now;
}

void ClientCore::OnMarkerAnswered(int64_t checkpoint, bool failed) {
  FrameHeader head;
  head.type = FrameType::kSettled;
  head.argument = static_cast<uint64_t>(checkpoint);
  {
    std::lock_guard lock(settling_mu_);
    if (settling_.checkpoint != checkpoint) return;
    settling_.late |= failed;
    if (--settling_.markers > 0) return;
    if (settling_.late) head.flags = kSettledLate;
    settling_ = {};
  }
  leader().SendMarker(head, {});
}

// Known to be on a redirect before it is asked whether markers are going out.
void ClientCore::OnMoved(Redirect redirect) {
  const bool counts = Writes(redirect.head) && !redirect.applied;
  const int64_t after = redirect.after;
  redirector_.AddRedirect(std::move(redirect));
  std::lock_guard lock(settling_mu_);
  if (counts && settling_.checkpoint > after) settling_.late = true;
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
    TRY(SendRequestTo(news, head, body, deadline).With("table '" + spec.name + "'"));
    std::lock_guard lock(mu_);
    table_specs_[table.id] = body;
    key_spaces_[table.id] = table.key_space;
  }
}

Result<std::string> ClientCore::SendRequest(Channel* channel, FrameType type, uint64_t argument,
                                            std::string body, TimePoint deadline) {
  FrameHeader head;
  head.type = type;
  head.argument = argument;
  return channel->FinishCall(channel->StartCall(head, std::move(body), false), deadline);
}

Status ClientCore::SendRequestToAll(FrameType type, uint64_t argument, const std::string& body,
                                    TimePoint deadline) {
  FrameHeader head;
  head.type = type;
  head.argument = argument;
  return SendRequestTo(Connected(), head, body, deadline);
}

Status ClientCore::SendRequestToFirstLanes(FrameType type, const std::string& body,
                                           TimePoint deadline) {
  FrameHeader head;
  head.type = type;
  return SendRequestTo(FirstLanes(), head, body, deadline);
}

Status ClientCore::SendRequestTo(const std::vector<Channel*>& whom, const FrameHeader& head,
                                 const std::string& body, TimePoint deadline) {
  std::vector<std::shared_ptr<Call>> calls;
  for (Channel* one : whom) calls.push_back(one->StartCall(head, body, false));
  Status first;
  for (size_t i = 0; i < calls.size(); ++i) {
    const auto reply = whom[i]->FinishCall(calls[i], deadline);
    if (first.ok() && !reply.ok() && !whom[i]->suspended()) first = reply.status();
  }
  return first;
}

Status ClientCore::Flush(TimePoint deadline) {
  for (uint64_t taken = 0;; taken = redirector_.received()) {
    for (auto& channel : channels_) TRY(channel->Flush(deadline));
    if (!redirector_.AwaitAll(deadline)) {
      return DeadlineExceeded("requests whose rows have moved were not answered in time");
    }
    // What was sent elsewhere meanwhile may be unanswered there.
    if (redirector_.received() == taken) return Status::Ok();
  }
}

Status ClientCore::LearnShards(std::string_view bytes, bool* news) {
  ShardMap theirs;
  TRY(DecodeShards(bytes, partition_.shards(), &theirs));
  std::lock_guard lock(mu_);
  *news = known_.Merge(theirs) || *news;
  return Status::Ok();
}

ShardMap ClientCore::known_shards() {
  std::lock_guard lock(mu_);
  return known_;
}

void ClientCore::AwaitChannels() {
  const TimePoint deadline = RealClock::Get()->Now() + options_.reconnect_timeout;
  for (auto& channel : channels_) {
    const Status status = channel->Flush(deadline);
    if (!status.ok()) LogInfo("requests whose rows have moved: {}", status.message());
  }
}

size_t ClientCore::ChannelOfRow(uint32_t table, Key key) {
  std::lock_guard lock(mu_);
  return channel_of_shard_[partition_.ShardOf(key_spaces_[table], key)];
}

int ClientCore::ServerOf(const TableRef& table, Key key) {
  std::lock_guard lock(mu_);
  return known_.At(partition_.ShardOf(table.key_space, key)).owner.server;
}

Status ClientCore::Clock(uint64_t n, TimePoint deadline) {
  TRY(Flush(deadline));
  uint64_t known = clock_;
  while (known < n && !clock_.compare_exchange_weak(known, n)) {
  }
  const Consistency& rule = options_.consistency;
  std::string body;
  ByteWriter writer(&body);
  writer.Put(static_cast<uint8_t>(rule.kind != Consistency::Kind::kAsp));
  writer.Put(rule.kind == Consistency::Kind::kSsp ? rule.staleness : uint32_t{0});
  const auto reply = SendRequest(&leader(), FrameType::kClock, n, body, deadline);
  body[0] = kAsksWhoIsLate;
  return WithLateWorkers(reply.status(), FrameType::kClock, n, std::move(body))
      .With(fmt::format("clock {}", n));
}

Status ClientCore::Barrier(const std::string& name, TimePoint deadline) {
  uint64_t left = 0;
  {
    std::lock_guard lock(barriers_mu_);
    if (const auto found = left_barriers_.find(name); found != left_barriers_.end()) {
      left = found->second;
    }
  }
  if (left != 0) {
    const Status before = LeaveBarrier(name, left, deadline);
    if (before.ok() || before.code() != Code::kDeadlineExceeded) return before;
    std::lock_guard lock(barriers_mu_);
    if (left_barriers_.contains(name)) return before.With("barrier '" + name + "'");
  }
  FrameHeader head;
  head.type = FrameType::kBarrier;
  const auto call = leader().StartCall(head, name, false);
  Status status = leader().FinishCall(call, deadline).status();
  if (status.code() == Code::kDeadlineExceeded || status.code() == Code::kCancelled) {
    // Without it the others would pass, and this worker's next try would wait for them in vain.
    const Status gone = LeaveBarrier(name, call->head.id, RealClock::Get()->Now() + kLastWord);
    if (gone.ok()) return gone;
    if (status.code() == Code::kDeadlineExceeded) status = gone;
  }
  return status.With("barrier '" + name + "'");
}

Status ClientCore::LeaveBarrier(const std::string& name, uint64_t id, TimePoint deadline) {
  {
    std::lock_guard lock(barriers_mu_);
    left_barriers_[name] = id;
  }
  std::string body;
  ByteWriter writer(&body);
  writer.Put(id);
  writer.PutString(name);
  TRY_ASSIGN(const std::string reply, SendRequest(&leader(), FrameType::kBarrier, kLeavesBarrier,
                                                  std::move(body), deadline));
  uint8_t passed = 0;
  std::string_view late;
  ByteReader reader(reply);
  TRY(reader.Get(&passed));
  TRY(reader.GetString(&late, kMaxPayload));
  {
    std::lock_guard lock(barriers_mu_);
    left_barriers_.erase(name);
  }
  if (passed != 0) return Status::Ok();
  return DeadlineExceeded(late.empty() ? "not all workers entered in time" : std::string(late));
}

// A wait that was too long for its caller names the workers that it was for, if server 0 can still
// say.
Status ClientCore::WithLateWorkers(const Status& status, FrameType type, uint64_t argument,
                                   std::string body) {
  if (status.code() != Code::kDeadlineExceeded) return status;
  const TimePoint deadline = RealClock::Get()->Now() + kLastWord;
  const auto late = SendRequest(&leader(), type, argument, std::move(body), deadline);
  return late.ok() && !late->empty() ? status.With(*late) : status;
}

Status ClientCore::SetProgress(std::string bytes) {
  if (bytes.size() > kMaxProgressBytes) {
    return InvalidArgument(
        fmt::format("progress of {} bytes, expected at most {}", bytes.size(), kMaxProgressBytes));
  }
  gate_.Enter();
  {
    std::lock_guard lock(progress_mu_);
    progress_ = bytes;
  }
  FrameHeader head;
  head.type = FrameType::kProgress;
  leader().SendNotice(head, bytes);
  gate_.Leave();
  return Status::Ok();
}

Status ClientCore::Leave(TimePoint deadline) {
  TRY(Flush(deadline));
  std::string progress;
  {
    std::lock_guard lock(progress_mu_);
    progress = progress_;
  }
  for (Channel* channel : Connected()) channel->SetLeft();
  return SendRequestToAll(FrameType::kLeave, 0, progress, deadline).With("leave");
}

}  // namespace shoal::ps
