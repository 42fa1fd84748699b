#include "ps/wire/row_frame.h"

#include <cstring>

#include "base/bytes.h"

namespace shoal::ps {
namespace {

// As narrow as the frame says, padded to 8.
void WriteRawKeys(const FrameHeader& head, const RowChunk& rows, char* to) {
  std::memset(to + KeyArea(rows.n, head.key_bytes) - 8, 0, 8);
  if (head.key_bytes == sizeof(Key)) {
    for (size_t i = 0; i < rows.n; ++i, to += sizeof(Key)) {
      std::memcpy(to, &rows.keys[rows.At(i)], sizeof(Key));
    }
    return;
  }
  for (size_t i = 0; i < rows.n; ++i, to += sizeof(uint32_t)) {
    const auto key = static_cast<uint32_t>(rows.keys[rows.At(i)]);
    std::memcpy(to, &key, sizeof key);
  }
}

// A call's argument and the keys; returns where they end.
char* WriteFront(const FrameHeader& head, const RowChunk& rows, char* to) {
  if (!rows.front.empty() || head.key_bytes == kKeysAreRemembered) {
    std::memcpy(to, rows.front.data(), rows.front.size());
    return to + rows.front.size();
  }
  const size_t argument = ArgumentArea(head);
  if (argument > 0) {
    std::memset(to + argument - 8, 0, 8);
    std::memcpy(to, rows.argument.data(), rows.argument.size());
  }
  WriteRawKeys(head, rows, to + argument);
  return to + argument + KeyArea(rows.n, head.key_bytes);
}

bool InOnePiece(const RowChunk& rows) {
  return rows.deltas.rows == nullptr && rows.pick == nullptr && rows.deltas.stride == rows.dim;
}

}  // namespace

size_t SizeRowFrame(const RowChunk&, FrameHeader* head) {
  const size_t payload = ArgumentArea(*head) + KeyAreaOf(*head) + PaddedTo8(ValueBytes(*head));
  head->payload = static_cast<uint32_t>(payload);
  return sizeof *head + payload;
}

void WriteRowFrame(FrameHeader head, const RowChunk& rows, bool checked, char* to) {
  const size_t values = ValueBytes(head), row_bytes = rows.dim * sizeof(float);
  char* const payload = to + sizeof head;
  char* at = WriteFront(head, rows, payload);
  if (values > 0 && (rows.coded != nullptr || InOnePiece(rows))) {
    std::memcpy(
        at, rows.coded != nullptr ? static_cast<const void*>(rows.coded) : rows.deltas[rows.first],
        values);
    at += values;
  } else if (values > 0) {
    for (size_t i = 0; i < rows.n; ++i, at += row_bytes) {
      std::memcpy(at, rows.deltas[rows.At(i)], row_bytes);
    }
  }
  std::memset(at, 0, PaddedTo8(values) - values);
  if (checked) head.payload_crc = Crc32c(payload, head.payload);
  SealHeader(&head);
  std::memcpy(to, &head, sizeof head);
}

bool IsContiguous(const RowChunk& rows) {
  return !rows.deltas.empty() && rows.coded == nullptr && InOnePiece(rows) &&
         rows.n * rows.dim % 2 == 0;
}

char* WriteRowFrameHead(FrameHeader head, const RowChunk& rows, char* to) {
  char* const end = WriteFront(head, rows, to + sizeof head);
  const auto front = static_cast<size_t>(end - to) - sizeof head;
  head.payload_crc =
      Crc32c(rows.deltas[rows.first], ValueBytes(head), Crc32c(to + sizeof head, front));
  SealHeader(&head);
  std::memcpy(to, &head, sizeof head);
  return end;
}

}  // namespace shoal::ps
