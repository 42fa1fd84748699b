#include "ps/lane/replica_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "ps/wire/row_frame.h"

namespace shoal::ps {
namespace {

constexpr size_t kEntryHead = 16;  // a multiple of 8: rows lie as they lay

void WriteKeys(const FrameHeader& head, const RowRequest& request, char* to) {
  KeyBatch batch;
  for (size_t first = 0; first < head.rows; first += kBatchRows) {
    const size_t n = std::min<size_t>(kBatchRows, head.rows - first);
    request.FillKeys(first, n, &batch);
    std::memcpy(to + first * sizeof(Key), batch.keys.data(), n * sizeof(Key));
  }
}

}  // namespace

std::string BeginEntry(EntryKind kind, int client, uint64_t session) {
  std::string entry;
  ByteWriter writer(&entry);
  writer.Put(kind);
  writer.Put(int32_t{client});
  writer.Put(session);
  return entry;
}

Status ReadEntry(std::string_view bytes, Entry* entry) {
  ByteReader reader(bytes);
  uint32_t kind = 0;
  TRY(reader.Get(&kind));
  TRY(reader.Get(&entry->client));
  TRY(reader.Get(&entry->session));
  if (kind < 1 || kind > static_cast<uint32_t>(EntryKind::kEmptied)) {
    return InvalidArgument(fmt::format("an entry of kind {}", kind));
  }
  entry->kind = static_cast<EntryKind>(kind);
  entry->content = bytes.substr(bytes.size() - reader.remaining());
  return Status::Ok();
}

Result<std::string> RowsEntry(int client, uint64_t session, FrameHeader head,
                              const RowSource& source, const RowRequest& request) {
  if (head.type == FrameType::kPushPull) head.type = FrameType::kPush;
  head.flags &= kCallHasDeltas;
  head.answer = ValueType::kF32;
  head.key_slot = 0;
  head.argument = 0;
  const bool raw = head.key_bytes >= 4 && source.part == nullptr;
  if (!raw && source.part == nullptr) head.key_bytes = sizeof(Key);
  head.key_area = 0;
  const size_t argument = ArgumentArea(head), keys = KeyAreaOf(head), values = ValueBytes(head);
  const size_t payload = argument + keys + PaddedTo8(values);
  if (kEntryHead + sizeof head + payload > kMaxPayload) {
    return ResourceExhausted(
        fmt::format("a request of {} bytes; a server that is copied takes at most {}", payload,
                    kMaxPayload - kEntryHead - sizeof head));
  }
  head.payload = static_cast<uint32_t>(payload);
  std::string entry = BeginEntry(EntryKind::kRows, client, session);
  entry.resize(kEntryHead + sizeof head + payload);
  char* to = entry.data() + kEntryHead;
  if (source.part != nullptr) {
    RowChunk part = *source.part;
    part.front = {};
    WriteRowFrame(head, part, false, to);
    return entry;
  }
  head.payload_crc = 0;
  SealHeader(&head);
  std::memcpy(to, &head, sizeof head);
  to += sizeof head;
  std::memcpy(to, source.front.data(), argument);
  to += argument;
  if (raw) {
    std::memcpy(to, source.front.data() + argument, keys);
  } else {
    WriteKeys(head, request, to);
  }
  if (values > 0) std::memcpy(to + keys, source.values, values);
  return entry;
}

std::string CopyRowsEntry(uint32_t table, size_t floats, const std::vector<Key>& keys,
                          const std::vector<float>& rows) {
  std::string entry = BeginEntry(EntryKind::kCopyRows, -1, 0);
  ByteWriter writer(&entry);
  writer.Put(table);
  writer.Put(static_cast<uint32_t>(floats));
  writer.Put(static_cast<uint32_t>(keys.size()));
  writer.Put(uint32_t{0});
  writer.PutRaw(keys.data(), keys.size() * sizeof(Key));
  writer.PutRaw(rows.data(), rows.size() * sizeof(float));
  return entry;
}

}  // namespace shoal::ps
