#include "ps/lane/control_request.h"

#include "base/bytes.h"

namespace shoal::ps {

Answer MakeAnswer(const std::shared_ptr<ServerConnection>& peer, uint64_t id, Lane* lane) {
  return [weak = std::weak_ptr<ServerConnection>(peer), id, lane](const Status& status,
                                                                  std::string_view body) {
    auto alive = weak.lock();
    if (alive == nullptr) return;
    FrameHeader head;
    head.id = id;
    head.type = status.ok() ? FrameType::kReply : FrameType::kError;
    if (status.ok()) {
      lane->Respond(alive, head, body);
    } else {
      lane->Respond(alive, head, EncodeError(status));
    }
    lane->QueueFlush(std::move(alive));
  };
}

bool ChangesState(FrameType type) {
  switch (type) {
    case FrameType::kMarker:
    case FrameType::kSettled:
    case FrameType::kCreateTable:
    case FrameType::kClock:
    case FrameType::kBarrier:
    case FrameType::kPutBlob:
    case FrameType::kDeleteBlob:
    case FrameType::kLeave:
    case FrameType::kProgress:
      return true;
    default:
      return false;
  }
}

void LogControl(Lane* lane, const Hello& from, const FrameHeader& head, std::string_view body) {
  if (!lane->log.on() || !ChangesState(head.type)) return;
  std::string entry = BeginEntry(EntryKind::kControl, from.client, from.session);
  ByteWriter writer(&entry);
  writer.Put(head.id);
  writer.Put(head.argument);
  writer.Put(uint32_t{static_cast<uint8_t>(head.type)});
  writer.PutString(body);
  lane->Log(std::move(entry));
}

}  // namespace shoal::ps
