#include "ps/client/channel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/log.h"
#include "base/mutex.h"
#include "ps/storage/optimizer_kernels.h"
#include "ps/transport/connection_poller.h"
#include "ps/wire/value_codec.h"

namespace shoal::ps {

namespace {

constexpr Duration kAskInterruptedEvery = std::chrono::milliseconds(100);

bool HasRows(FrameType type) { return type != FrameType::kMarker && type != FrameType::kSettled; }

// Rows of an answer to where the caller wants them.
void PutRows(ValueType type, const char* from, const RowChunk& part) {
  std::array<float*, kBatchRows> to;
  for (size_t first = 0; first < part.n; first += kBatchRows) {
    const size_t n = std::min(kBatchRows, part.n - first);
    for (size_t i = 0; i < n; ++i) to[i] = part.out[part.At(first + i)];
    DecodeRows(type, from, n, part.dim, to.data());
    from += n * WireRowBytes(type, part.dim);
  }
}

// Not kDone: `late` as DeadlineExceeded, or that the wait was interrupted.
Status StatusOf(Awaited awaited, std::string late) {
  return awaited == Awaited::kLate ? DeadlineExceeded(std::move(late))
                                   : Cancelled("the wait was interrupted");
}

}  // namespace

Channel::Channel(int server, uint32_t lane, size_t window_bytes, TicketTable* tickets, Hooks hooks)
    : server_(server),
      lane_(lane),
      window_bytes_(window_bytes),
      tickets_(tickets),
      hooks_(std::move(hooks)),
      slots_(kSlots) {}

Channel::~Channel() { Close(); }

std::string Channel::Name() const {
  const MutexLock lock(mu_);
  return fmt::format("server {} ({})", server_, peer_.address);
}

bool Channel::up() const {
  const MutexLock lock(mu_);
  return connection_ != nullptr;
}

bool Channel::failed() const {
  const MutexLock lock(mu_);
  return !failed_.ok();
}

uint64_t Channel::first_unanswered() const {
  const MutexLock lock(mu_);
  return window_.first;
}

Counters Channel::counters() const {
  const MutexLock lock(mu_);
  return counters_;
}

std::shared_ptr<Connection> Channel::connection() const {
  const MutexLock lock(mu_);
  return connection_;
}

template <typename Done>
Awaited Channel::Await(MutexLock* lock, TimePoint deadline, const Done& done) {
  ConnectionPoller poller;
  while (!done()) {
    std::shared_ptr<Connection> connection = connection_;
    lock->unlock();
    const bool again = poller.PollOnce({&connection, 1});
    connection.reset();  // the last one waits for handlers, which take the lock
    lock->lock();
    if (again || done()) continue;
    const bool asks = hooks_.interrupted != nullptr;
    const TimePoint until =
        asks ? std::min(deadline, RealClock::Get()->Now() + kAskInterruptedEvery) : deadline;
    if (progress_.wait_until(*lock, until) != std::cv_status::timeout || done()) continue;
    if (until == deadline) return Awaited::kLate;
    lock->unlock();
    const bool interrupted = hooks_.interrupted();
    lock->lock();
    if (interrupted && !done()) return Awaited::kInterrupted;
  }
  return Awaited::kDone;
}

void Channel::OnRoom() {
  const MutexLock lock(mu_);
  progress_.notify_all();
}

void Channel::SendPending(Connection* connection, const Pending& pending) {
  Outgoing out;
  out.head = pending.head;
  if (!HasRows(pending.head.type)) {
    out.body = pending.body;
    return connection->Send(out);
  }
  out.rows = &pending.part;
  if (!connection->SavesBytes()) return connection->Send(out);
  buffers_.front.assign(pending.part.argument);
  buffers_.front.resize(ArgumentArea(out.head));
  keys_.Write(pending.part, &out.head, &buffers_.front);
  counters_.key_bytes += KeyAreaOf(out.head);
  RowChunk part = pending.part;
  part.front = buffers_.front;
  out.rows = &part;
  connection->Send(out);
}

// Under the lock. A server whose rows have all gone needs no marker.
bool Channel::HasUnansweredChunks() const {
  for (uint64_t seq = window_.first; seq != window_.next; ++seq) {
    if (slots_[seq % kSlots].ticket != kNoTicket) return true;
  }
  return false;
}

bool Channel::idle() const {
  const MutexLock lock(mu_);
  return !HasUnansweredChunks() && calls_.empty();
}

bool Channel::Suspend() {
  std::shared_ptr<Connection> connection;
  std::vector<int64_t> markers;
  {
    const MutexLock lock(mu_);
    if (HasUnansweredChunks() || !calls_.empty()) return false;
    markers = UnansweredMarkers();
    window_.first = window_.next;
    window_.bytes = 0;
    suspended_ = true;
    connection = std::move(connection_);
    connection_ = nullptr;
    progress_.notify_all();
  }
  if (connection != nullptr) connection->Close();
  for (const int64_t checkpoint : markers) hooks_.marker_answered(checkpoint, false);
  return true;
}

// Under the lock.
std::vector<int64_t> Channel::UnansweredMarkers() const {
  std::vector<int64_t> checkpoints;
  for (uint64_t seq = window_.first; seq != window_.next; ++seq) {
    const FrameHeader& head = slots_[seq % kSlots].head;
    if (head.type == FrameType::kMarker) {
      checkpoints.push_back(static_cast<int64_t>(head.argument));
    }
  }
  return checkpoints;
}

void Channel::Resume(std::string address, OpenedConnection dialled,
                     const std::vector<std::string>& tables, bool wakes) {
  std::shared_ptr<Connection> connection = std::move(dialled.connection);
  std::shared_ptr<Connection> old;
  {
    MutexLock lock(mu_);
    if (closing_.closed || !failed_.ok() || (suspended_ && !wakes)) return;
    suspended_ = false;
    old = std::move(connection_);
    connection_ = connection;
    peer_.address = std::move(address);
    const bool restarted = peer_.instance != 0 && peer_.instance != dialled.welcome.instance;
    peer_.instance = dialled.welcome.instance;
    if (restarted) {
      for (const std::string& spec : tables) {
        FrameHeader head;
        head.type = FrameType::kCreateTable;
        connection->Send({head, spec, nullptr});
      }
    }
    keys_.Clear();
    for (uint64_t seq = window_.first; seq != window_.next; ++seq)
      SendPending(connection.get(), SlotOf(seq));
    for (auto& [id, call] : calls_) {
      if (restarted && call->same_instance) {
        call->done = true;
        call->status = Aborted(fmt::format("server {} ({}) restarted", server_, peer_.address));
      } else if (!call->done) {
        connection->Send({call->head, call->body, nullptr});
      }
    }
    if (left_) {
      FrameHeader head;
      head.type = FrameType::kLeave;
      connection->Send({head, {}, nullptr});
    }
    progress_.notify_all();
  }
  connection->Start(this);
  connection->FlushReplies();
}

void Channel::SetLeft() {
  const MutexLock lock(mu_);
  left_ = true;
}

void Channel::FailConnection(const Status& why) {
  std::shared_ptr<Connection> connection;
  {
    const MutexLock lock(mu_);
    if (connection_ == nullptr) return;
    connection = std::move(connection_);
    connection_ = nullptr;
    ++closing_.threads;
  }
  connection->Close();
  LogInfo("{}: {}", Name(), why.message());
  hooks_.lost(this);
  const MutexLock lock(mu_);
  --closing_.threads;
  progress_.notify_all();
}

void Channel::DisconnectUnlessAt(const std::string& address) {
  {
    const MutexLock lock(mu_);
    if (connection_ == nullptr || peer_.address == address) return;
  }
  FailConnection(Unavailable("Members names " + address + " now"));
}

void Channel::OnClosed(const Status& why) { FailConnection(why); }

void Channel::Fail(const Status& why) {
  std::vector<uint32_t> tickets;
  std::vector<int64_t> markers;
  {
    const MutexLock lock(mu_);
    if (!failed_.ok()) return;
    failed_ = why;
    markers = UnansweredMarkers();
    for (uint64_t seq = window_.first; seq != window_.next; ++seq) {
      if (SlotOf(seq).ticket != kNoTicket) tickets.push_back(SlotOf(seq).ticket);
    }
    window_.first = window_.next;
    window_.bytes = 0;
    for (auto& [id, call] : calls_) {
      if (call->done) continue;
      call->done = true;
      call->status = why;
    }
    progress_.notify_all();
  }
  for (const int64_t checkpoint : markers) hooks_.marker_answered(checkpoint, !tickets.empty());
  for (const uint32_t ticket : tickets) tickets_->ChunkDone(ticket, why);
}

void Channel::Close() {
  std::shared_ptr<Connection> connection;
  {
    const MutexLock lock(mu_);
    closing_.closed = true;
    connection = std::move(connection_);
    connection_ = nullptr;
  }
  if (connection != nullptr) connection->Close();
  // Another thread may have taken the connection to end it, and is to tell the client, which may be
  // gone when this returns.
  MutexLock lock(mu_);
  progress_.wait(lock, [this] { return closing_.threads == 0; });
}

Status Channel::SendChunk(FrameHeader head, const RowChunk& part, uint32_t ticket,
                          TimePoint deadline, TimePoint since) {
  std::shared_ptr<Connection> connection;
  {
    MutexLock lock(mu_);
    const size_t bytes = part.n * part.dim * sizeof(float);
    const auto fits = [&] {
      if (!failed_.ok() || window_.in_flight() == 0) return true;
      return window_.in_flight() < kSlots - kSlotsForMarkers &&
             window_.bytes + bytes <= window_bytes_ &&
             (connection_ == nullptr ||
              connection_->Takes(sizeof(FrameHeader) + bytes + part.n * sizeof(Key)));
    };
    if (const Awaited room = Await(&lock, deadline, fits); room != Awaited::kDone) {
      return StatusOf(room, fmt::format("server {} ({}) does not take more requests: {} are "
                                        "unanswered",
                                        server_, peer_.address, window_.in_flight()));
    }
    if (!failed_.ok()) return failed_;
    tickets_->AddChunk(ticket);
    head.id = window_.next++;
    Pending& pending = SlotOf(head.id);
    pending.head = head;
    pending.part = part;
    if (part.pick != nullptr) {
      pending.pick.assign(part.pick, part.pick + part.n);
      pending.part.pick = pending.pick.data();
    }
    if (part.coded != nullptr) {
      if (!buffers_.spare.empty()) {
        pending.coded = std::move(buffers_.spare.back());
        buffers_.spare.pop_back();
      }
      pending.coded.assign(part.coded, ValueBytes(head));
      pending.part.coded = pending.coded.data();
    }
    pending.body.assign(part.argument);
    pending.part.argument = pending.body;
    pending.ticket = ticket;
    pending.bytes = bytes;
    pending.since = since;
    window_.bytes += bytes;
    counters_.requests += 1;
    if (HasDeltas(head)) {
      counters_.rows_pushed += part.n;
      counters_.bytes_pushed += ValueBytes(head);
    }
    connection = connection_;
    if (connection != nullptr) SendPending(connection.get(), pending);
  }
  if (connection != nullptr) connection->FlushReplies();
  return Status::Ok();
}

bool Channel::SendMarker(FrameHeader head, const std::string& progress) {
  std::shared_ptr<Connection> connection;
  {
    const MutexLock lock(mu_);
    // With so many markers unanswered no checkpoint succeeds anyway.
    if (!failed_.ok() || suspended_ || window_.in_flight() >= kSlots) return false;
    head.id = window_.next++;
    if (head.type == FrameType::kMarker) {
      last_marker_.seq = head.id;
      last_marker_.checkpoint = static_cast<int64_t>(head.argument);
    }
    Pending& pending = SlotOf(head.id);
    pending.head = head;
    pending.body = progress;
    pending.ticket = kNoTicket;
    pending.bytes = 0;
    connection = connection_;
    if (connection != nullptr) SendPending(connection.get(), pending);
  }
  if (connection != nullptr) connection->FlushReplies();
  return true;
}

void Channel::SendNotice(FrameHeader head, std::string_view body) {
  std::shared_ptr<Connection> connection;
  {
    const MutexLock lock(mu_);
    connection = connection_;
    if (connection != nullptr) connection->Send({head, body, nullptr});
  }
  if (connection != nullptr) connection->FlushReplies();
}

std::shared_ptr<Call> Channel::StartCall(FrameHeader head, std::string body, bool same_instance) {
  auto call = std::make_shared<Call>();
  call->body = std::move(body);
  call->same_instance = same_instance;
  std::shared_ptr<Connection> connection;
  {
    const MutexLock lock(mu_);
    head.id = next_call_++;
    call->head = head;
    if (!failed_.ok() || suspended_) {
      call->done = true;
      call->status =
          !failed_.ok() ? failed_ : Unavailable(fmt::format("server {} has no rows", server_));
      return call;
    }
    calls_[head.id] = call;
    connection = connection_;
    if (connection != nullptr) connection->Send({head, call->body, nullptr});
  }
  if (connection != nullptr) connection->FlushReplies();
  return call;
}

Result<std::string> Channel::FinishCall(const std::shared_ptr<Call>& call, TimePoint deadline) {
  MutexLock lock(mu_);
  const Awaited reply = Await(&lock, deadline, [&] { return call->done; });
  calls_.erase(call->head.id);
  if (reply != Awaited::kDone) {
    return StatusOf(reply,
                    fmt::format("server {} ({}) did not answer in time", server_, peer_.address));
  }
  if (!call->status.ok()) return call->status;
  return std::move(call->reply);
}

bool Channel::HasUnanswered(uint32_t ticket) const {
  const MutexLock lock(mu_);
  for (uint64_t seq = window_.first; seq != window_.next; ++seq) {
    if (slots_[seq % kSlots].ticket == ticket) return true;
  }
  return false;
}

Status Channel::Flush(TimePoint deadline) {
  MutexLock lock(mu_);
  const uint64_t until = window_.next;
  const Awaited answers =
      Await(&lock, deadline, [&] { return !failed_.ok() || window_.first >= until; });
  if (!failed_.ok()) return failed_;
  if (answers == Awaited::kDone) return Status::Ok();
  return StatusOf(answers, fmt::format("server {} ({}) did not answer {} requests in time", server_,
                                       peer_.address, window_.in_flight()));
}

void Channel::OnFrame(const FrameHeader& head, std::string_view body) {
  switch (head.type) {
    case FrameType::kAck:
    case FrameType::kRows:
    case FrameType::kRefused:
      return OnAnswer(head, body);
    case FrameType::kReply:
    case FrameType::kError:
      return OnReply(head, body);
    case FrameType::kMarkerRequest:
      return hooks_.marker_request(static_cast<int64_t>(head.id));
    case FrameType::kShardsMoved:
      return hooks_.shards_moved(server_);
    default:
      return FailConnection(
          DataLoss(fmt::format("sent a frame of type {}", static_cast<int>(head.type))));
  }
}

// Answers come in the order of the requests. Under the lock.
Status Channel::CheckAnswer(const FrameHeader& head, std::string_view body) {
  if (window_.in_flight() == 0 || head.id != window_.first) {
    return DataLoss(fmt::format("answered request {}, expected {}", head.id, window_.first));
  }
  if (head.type == FrameType::kRefused) return Status::Ok();
  const Pending& pending = SlotOf(head.id);
  const bool wants_rows = WantsRows(pending.head);
  if (wants_rows != (head.type == FrameType::kRows) ||
      (wants_rows && !body.empty() &&
       (body.size() < AnswerBytes(pending.head) || head.values != pending.head.answer))) {
    return DataLoss(fmt::format("answered request {} with a frame that does not fit", head.id));
  }
  return Status::Ok();
}

void Channel::OnAnswer(const FrameHeader& head, std::string_view body) {
  Status broken;
  bool settled = false;
  uint32_t ticket = kNoTicket;
  {
    const MutexLock lock(mu_);
    // After a failure no caller waits, and its memory may be gone.
    if (!failed_.ok()) return;
    broken = CheckAnswer(head, body);
    // Most answers only say that a push is in.
    settled = broken.ok() && head.type == FrameType::kAck && HasRows(SlotOf(head.id).head.type);
    if (settled) ticket = RetireOldest(&SlotOf(head.id));
  }
  if (!broken.ok()) return FailConnection(broken);
  if (settled) return CompleteChunk(ticket, Status::Ok());
  if (head.type == FrameType::kRefused && (head.flags & kRefusedMoved) != 0) return OnMoved(head);

  // The slot is the oldest one: no other thread changes it before it is freed below.
  Pending& pending = SlotOf(head.id);
  Status status;
  if (head.type == FrameType::kRefused) {
    status = DecodeError(body).With(Name());
  } else if (head.type == FrameType::kRows && !body.empty()) {
    PutRows(head.values, body.data(), pending.part);
  }
  // Before it is no longer ours: Flush must not miss what comes of it.
  if (pending.head.type == FrameType::kMarker) {
    hooks_.marker_answered(static_cast<int64_t>(pending.head.argument), false);
  }
  {
    const MutexLock lock(mu_);
    if (!failed_.ok()) return;
    if (head.type == FrameType::kRows) {
      counters_.rows_pulled += pending.part.n;
      counters_.bytes_pulled += AnswerBytes(pending.head);
    }
    ticket = RetireOldest(&pending);
  }
  CompleteChunk(ticket, status);
}

uint32_t Channel::RetireOldest(Pending* oldest) {
  const uint32_t ticket = oldest->ticket;
  window_.bytes -= oldest->bytes;
  if (oldest->part.coded != nullptr) {
    buffers_.spare.push_back(std::move(oldest->coded));
    oldest->part.coded = nullptr;
  }
  ++window_.first;
  progress_.notify_all();
  return ticket;
}

void Channel::CompleteChunk(uint32_t ticket, const Status& status) {
  if (ticket != kNoTicket) tickets_->ChunkDone(ticket, status);
}

// Its request goes on without this channel.
void Channel::OnMoved(const FrameHeader& head) {
  Pending& pending = SlotOf(head.id);
  Redirect redirect;
  {
    const MutexLock lock(mu_);
    if (!failed_.ok() || pending.ticket == kNoTicket) return;
    redirect.head = pending.head;
    redirect.part = pending.part;
    redirect.pick = std::move(pending.pick);
    if (pending.part.pick != nullptr) redirect.part.pick = redirect.pick.data();
    if (pending.part.coded != nullptr) redirect.coded = std::move(pending.coded);
    redirect.part.coded = pending.part.coded = nullptr;
    redirect.argument = std::move(pending.body);
    redirect.ticket = std::exchange(pending.ticket, kNoTicket);
    redirect.applied = (head.flags & kRefusedApplied) != 0;
    redirect.server = server_;
    redirect.after = head.id > last_marker_.seq ? last_marker_.checkpoint : -1;
    redirect.since = pending.since != TimePoint{} ? pending.since : RealClock::Get()->Now();
  }
  // Before it is no longer ours: Flush must not miss it.
  hooks_.moved(std::move(redirect));
  const MutexLock lock(mu_);
  if (!failed_.ok()) return;
  window_.bytes -= pending.bytes;
  ++window_.first;
  progress_.notify_all();
}

void Channel::OnReply(const FrameHeader& head, std::string_view body) {
  if (head.id == 0) {
    // To what was sent without a call: a table made again, or the server's parting word.
    if (head.type == FrameType::kError) LogInfo("{}: {}", Name(), DecodeError(body).message());
    return;
  }
  const std::string name = Name();
  const MutexLock lock(mu_);
  const auto found = calls_.find(head.id);
  if (found == calls_.end() || found->second->done) return;
  Call& call = *found->second;
  call.done = true;
  if (head.type == FrameType::kError) {
    call.status = DecodeError(body).With(name);
  } else {
    call.reply = body;
  }
  progress_.notify_all();
}

}  // namespace shoal::ps
