#include "ps/row_frame.h"

#include <cstring>

#include "base/bytes.h"

namespace shoal::ps {
namespace {

size_t ValueBytes(const RowPart& rows) {
  return rows.deltas.empty() ? 0 : rows.n * rows.dim * sizeof(float);
}

// As narrow as the frame says, padded to 8.
void WriteKeys(const FrameHeader& head, const RowPart& rows, char* to) {
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

bool InOnePiece(const RowPart& rows) {
  return rows.deltas.rows == nullptr && rows.pick == nullptr && rows.deltas.stride == rows.dim;
}

}  // namespace

size_t SizeRowFrame(const RowPart& rows, FrameHeader* head) {
  const size_t payload = KeyArea(rows.n, head->key_bytes) + PaddedTo8(ValueBytes(rows));
  head->payload = static_cast<uint32_t>(payload);
  return sizeof *head + payload;
}

void WriteRowFrame(FrameHeader head, const RowPart& rows, bool checked, char* to) {
  const size_t values = ValueBytes(rows), row_bytes = rows.dim * sizeof(float);
  char* const payload = to + sizeof head;
  WriteKeys(head, rows, payload);
  char* at = payload + KeyArea(rows.n, head.key_bytes);
  if (values > 0 && InOnePiece(rows)) {
    std::memcpy(at, rows.deltas[rows.first], values);
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

bool IsContiguous(const RowPart& rows) {
  return !rows.deltas.empty() && InOnePiece(rows) && ValueBytes(rows) % 8 == 0;
}

char* WriteRowFrameHead(FrameHeader head, const RowPart& rows, char* to) {
  const size_t keys = KeyArea(rows.n, head.key_bytes);
  WriteKeys(head, rows, to + sizeof head);
  head.payload_crc =
      Crc32c(rows.deltas[rows.first], ValueBytes(rows), Crc32c(to + sizeof head, keys));
  SealHeader(&head);
  std::memcpy(to, &head, sizeof head);
  return to + sizeof head + keys;
}

}  // namespace shoal::ps
