#include "ps/replication/backup_receiver.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "ps/checkpoint/checkpoint_service.h"
#include "ps/server/blob_service.h"
#include "ps/server/shard_service.h"
#include "ps/server/worker_service.h"
#include "ps/wire/spec_codec.h"

namespace shoal::ps {

Result<uint64_t> BackupReceiver::Connect(const Hello& hello,
                                         const std::shared_ptr<ServerConnection>& peer) {
  Lane& lane = context_->lane(hello.lane);
  Lane::Guard guard(lane);
  if (context_->role != ServerRole::kBackup || context_->stopped) {
    return Unavailable(fmt::format("server {} accepts no replica now", context_->options.index));
  }
  if (auto old = lane.primary_connection.lock(); old != nullptr && old != peer) {
    old->CloseAfterFlush(Aborted("the primary connected again"));
    lane.QueueFlush(std::move(old));
  }
  lane.primary_connection = peer;
  last_entry_at_ = context_->options.clock->Now().time_since_epoch().count();
  return lane.copied;
}

bool BackupReceiver::has_primary_connection() {
  for (auto& lane : context_->lanes) {
    Lane::Guard guard(*lane);
    if (!lane->primary_connection.expired()) return true;
  }
  return false;
}

bool BackupReceiver::IsComplete() {
  for (auto& lane : context_->lanes) {
    Lane::Guard guard(*lane);
    if (!lane->whole) return false;
  }
  return true;
}

Status BackupReceiver::OnFrame(const Hello& from, const std::shared_ptr<ServerConnection>& peer,
                               const FrameHeader& head, std::string_view body) {
  const int index = context_->options.index;
  Lane& lane = context_->lane(from.lane);
  if (context_->role != ServerRole::kBackup || lane.primary_connection.lock() != peer) {
    return Aborted(fmt::format("server {} is no backup any more", index));
  }
  if (head.id == 0 || head.id > lane.copied + 1) {
    return InvalidArgument(
        fmt::format("entry {} came after {}, expected no gap", head.id, lane.copied));
  }
  if (head.id == lane.copied + 1) {
    Entry entry;
    TRY(ReadEntry(body, &entry));
    try {
      TRY(Apply(from.lane, entry).With("an entry of the primary"));
    } catch (const std::bad_alloc&) {
      return ResourceExhausted(fmt::format("server {} has no memory for a replica", index));
    }
    lane.copied = head.id;
  }
  last_entry_at_ = context_->options.clock->Now().time_since_epoch().count();
  FrameHeader reply;
  reply.type = FrameType::kReply;
  reply.id = lane.copied;
  peer->Reply(reply, {});
  auto* to_flush = lane.to_flush();
  if (to_flush->empty() || to_flush->back() != peer) lane.QueueFlush(peer);
  return Status::Ok();
}

// An error means that the entry is malformed. What the primary refused, the backup refuses as well:
// that is no error.
Status BackupReceiver::Apply(uint32_t lane, const Entry& entry) {
  switch (entry.kind) {
    case EntryKind::kRows:
      return ApplyRows(lane, entry);
    case EntryKind::kJoin:
      return ApplyJoin(lane, entry);
    case EntryKind::kControl:
      return ApplyControl(lane, entry);
    case EntryKind::kLost:
      if (lane == 0) services_.blobs->store().ForgetUploadsOf(entry.session);
      return Status::Ok();
    case EntryKind::kDead:
      if (lane == 0) handler_->RemoveWorker(entry.client);
      return Status::Ok();
    case EntryKind::kCopyRows:
      return context_->lane(lane).ApplyCopiedRows(entry.content, 0);
    case EntryKind::kPaired:
      context_->lane(lane).whole = true;
      return Status::Ok();
    case EntryKind::kNothing:
      return Status::Ok();
    case EntryKind::kEmptied:
      primary_is_empty_ = true;
      return Status::Ok();
    case EntryKind::kMoved:
    case EntryKind::kShards:
    case EntryKind::kArriving:
      return services_.shards->ApplyEntry(lane, entry);
    case EntryKind::kSession:
      return ApplySession(&context_->lane(lane), entry);
    default:
      return ApplyState(lane, entry);
  }
}

Status BackupReceiver::ApplyRows(uint32_t lane_index, const Entry& entry) {
  Lane& lane = context_->lane(lane_index);
  FrameHeader head;
  TRY(ReadHeader(entry.content.substr(0, sizeof head), kMaxPayload, &head));
  const std::string_view payload = entry.content.substr(sizeof head);
  const bool plain = head.key_bytes >= 4 && head.key_slot == 0 && !WantsRows(head);
  if (!plain || payload.size() != head.payload ||
      (head.type != FrameType::kPush && head.type != FrameType::kCall)) {
    return InvalidArgument("a rows entry of the wrong size or kind");
  }
  Session* session = lane.ReplicatedSession(entry.session, entry.client);
  session->last_seq = std::max(session->last_seq, head.id - 1);
  RowSource source;
  source.front = payload.substr(0, ArgumentArea(head) + KeyAreaOf(head));
  source.values = payload.data() + source.front.size();
  bool order = false;
  const Status status = lane.RowOperation(session, head, source, &order);
  return order ? status : Status::Ok();
}

Status BackupReceiver::ApplyJoin(uint32_t lane, const Entry& entry) {
  Hello hello;
  hello.client = entry.client;
  hello.session = entry.session;
  hello.lane = lane;
  ByteReader reader(entry.content);
  TRY(reader.Get(&hello.first_seq));
  TRY(reader.Get(&hello.clock));
  if (hello.session == 0 || hello.first_seq == 0)
    return InvalidArgument("a join without a session");
  const auto joined = context_->lane(lane).Join(hello, nullptr);
  if (joined.ok() && context_->is_leader() && lane == 0 && hello.client >= 0) {
    services_.workers->Join(hello);
  }
  return Status::Ok();
}

Status BackupReceiver::ApplyControl(uint32_t lane_index, const Entry& entry) {
  Lane& lane = context_->lane(lane_index);
  FrameHeader head;
  uint32_t type = 0;
  std::string_view body;
  ByteReader reader(entry.content);
  TRY(reader.Get(&head.id));
  TRY(reader.Get(&head.argument));
  TRY(reader.Get(&type));
  TRY(reader.GetString(&body, kMaxPayload));
  head.type = static_cast<FrameType>(type & 0xff);
  if (!ChangesState(head.type)) return InvalidArgument("a control frame that changes no state");
  Hello from;
  from.client = entry.client;
  from.session = entry.session;
  from.lane = lane_index;
  if (head.type == FrameType::kCreateTable) {
    TableSpec spec;
    ByteReader bytes(body);
    TRY(DecodeSpec(&bytes, &spec));
    const Status refused = lane.CreateTable(spec);
    return Status::Ok();
  }
  const bool mark = head.type == FrameType::kMarker || head.type == FrameType::kSettled;
  if (mark || head.type == FrameType::kProgress) {
    if (mark) {
      lane.ApplyMarkerOfPrimary(lane.ReplicatedSession(from.session, from.client), head.id,
                                static_cast<int64_t>(head.argument));
    }
    if (context_->is_leader() && lane_index == 0 && from.client >= 0 && !body.empty()) {
      services_.workers->SetProgress(from.client, body);
    }
    return Status::Ok();
  }
  ControlRequest request{from, lane.ReplicatedSession(from.session, from.client), head, body,
                         [](const Status&, std::string_view) {}};
  const Status refused = handler_->Handle(&request);
  return Status::Ok();
}

Status BackupReceiver::ApplySession(Lane* lane, const Entry& entry) {
  uint64_t last_seq = 0;
  uint8_t left = 0, dead = 0, replaced = 0;
  ByteReader reader(entry.content);
  TRY(reader.Get(&last_seq));
  TRY(reader.Get(&left));
  TRY(reader.Get(&dead));
  TRY(reader.Get(&replaced));
  if (replaced != 0) {
    lane->MarkSessionReplaced(entry.session);
    return Status::Ok();
  }
  Session* session = lane->ReplicatedSession(entry.session, entry.client);
  session->last_seq = last_seq;
  session->left = left != 0;
  session->dead = dead != 0;
  return Status::Ok();
}

Status BackupReceiver::ApplyState(uint32_t lane, const Entry& entry) {
  if (lane != 0) return InvalidArgument("an entry that belongs to lane 0");
  switch (entry.kind) {
    case EntryKind::kServer:
      return ApplyServer(entry.content);
    case EntryKind::kProgress:
      services_.workers->SetProgress(entry.client, entry.content);
      return Status::Ok();
    case EntryKind::kBlob:
      return services_.blobs->ApplyEntry(entry);
    default:
      return InvalidArgument("an entry of unknown kind");
  }
}

Status BackupReceiver::ApplyServer(std::string_view content) {
  ByteReader reader(content);
  // Other lanes' threads may read these meanwhile: the values before and after are both right.
  uint64_t instance = 0;
  int64_t restored = 0, last_checkpoint = 0;
  TRY(reader.Get(&instance));
  TRY(reader.Get(&restored));
  TRY(reader.Get(&last_checkpoint));
  context_->instance = instance;
  services_.checkpoints->SetReplicated(restored, last_checkpoint);
  return services_.workers->LoadRegistry(&reader);
}

void BackupReceiver::TakeOver() {
  for (auto& lane : context_->lanes) {
    Lane::Guard guard(*lane);
    // No entry of the primary is applied from here on.
    if (auto old = lane->primary_connection.lock()) {
      old->CloseAfterFlush(
          Aborted(fmt::format("server {} has been taken over", context_->options.index)));
      lane->QueueFlush(std::move(old));
    }
    lane->primary_connection.reset();
    // Another lane's log may have told that a shard has arrived here: then its rows are here.
    services_.shards->AdoptAll(lane.get());
    const bool first = lane.get() == &context_->first_lane();
    if (first && context_->is_leader()) services_.workers->ExpectReconnections();
  }
}

}  // namespace shoal::ps
