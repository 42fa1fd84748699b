#include "ps/wire/frame.h"

#include <fmt/format.h>

#include <cstring>

#include "base/bytes.h"
#include "ps/types.h"

namespace shoal::ps {
namespace {

constexpr size_t kCheckedHeaderBytes = 60;
constexpr size_t kMaxErrorBytes = 4096;

bool IsRowOperation(FrameType type) {
  return type == FrameType::kPush || type == FrameType::kPull || type == FrameType::kPushPull ||
         type == FrameType::kCall;
}

Status BadRows(const FrameHeader& head, std::string_view what) {
  return InvalidArgument(
      fmt::format("row frame of type {}: {} rows of {} floats with keys of kind {}: {}",
                  static_cast<int>(head.type), head.rows, head.dim, head.key_bytes, what));
}

// Raw keys may be remembered, coded ones too; remembered ones must say where and what.
Status CheckKeys(const FrameHeader& head) {
  const bool raw = head.key_bytes == 4 || head.key_bytes == 8;
  const bool deltas = head.key_bytes == kKeysAreDeltas;
  const bool remembered = head.key_bytes == kKeysAreRemembered;
  if (!raw && !deltas && !remembered) return BadRows(head, "unknown keys");
  if (head.key_slot > kKeySlots || (head.key_slot == 0) != (head.argument == 0) ||
      (remembered && head.key_slot == 0)) {
    return BadRows(head, "a slot and a digest of keys that do not fit");
  }
  if ((!raw || head.key_slot != 0) && head.rows > kMaxCodedKeys) return BadRows(head, "too many");
  // A coded key has at least a byte.
  if (head.key_area % 8 != 0 || (!deltas && head.key_area != 0) ||
      (deltas && head.key_area < head.rows)) {
    return BadRows(head, "a key area that does not fit");
  }
  return Status::Ok();
}

Status CheckCall(const FrameHeader& head) {
  if (head.type == FrameType::kCall) {
    if (head.body <= kMaxCallArgument && head.flags <= (kCallHasDeltas | kCallWantsRows)) {
      return Status::Ok();
    }
  } else if (head.body == 0 && head.flags == 0) {
    return Status::Ok();
  }
  return BadRows(head, "fields of a call that do not fit");
}

// The fields were bounded before what is made of them, so nothing overflows 64 bits.
Status CheckRowFrame(const FrameHeader& head) {
  if (head.dim < 1 || head.dim > kMaxDim || head.rows < 1 ||
      uint64_t{head.rows} * head.dim * sizeof(float) > kMaxPayload) {
    return BadRows(head, "out of bounds");
  }
  if (head.values > ValueType::kInt8 || head.answer > ValueType::kInt8) {
    return BadRows(head, "unknown types of values");
  }
  if (IsRowOperation(head.type)) {
    TRY(CheckKeys(head));
    TRY(CheckCall(head));
  } else if (head.key_bytes != 0 || head.key_slot != 0 || head.flags != 0 || head.key_area != 0 ||
             head.body != 0 || head.argument != 0) {
    return BadRows(head, "an answer with fields of a request");
  }
  const size_t keys = IsRowOperation(head.type) ? KeyAreaOf(head) : 0;
  if (ArgumentArea(head) + keys + PaddedTo8(ValueBytes(head)) != head.payload) {
    return BadRows(head, fmt::format("they do not fit payload {}", head.payload));
  }
  return Status::Ok();
}

Status CheckLengths(const FrameHeader& head) {
  if (IsRowOperation(head.type) || head.type == FrameType::kRows) return CheckRowFrame(head);
  if (PaddedTo8(head.body) != head.payload || head.rows != 0 || head.dim != 0) {
    return InvalidArgument(fmt::format("frame of type {}: body {} does not fit payload {}",
                                       static_cast<int>(head.type), head.body, head.payload));
  }
  const int flags = head.type == FrameType::kRefused   ? kRefusedMoved | kRefusedApplied
                    : head.type == FrameType::kSettled ? kSettledLate
                                                       : 0;
  if (head.key_slot != 0 || head.flags > flags || head.key_area != 0 ||
      head.values != ValueType::kF32 || head.answer != ValueType::kF32) {
    return InvalidArgument(fmt::format("frame of type {}: fields that only row frames have",
                                       static_cast<int>(head.type)));
  }
  return Status::Ok();
}

}  // namespace

bool IsKnown(FrameType type) {
  switch (type) {
    case FrameType::kChallenge:
    case FrameType::kProof:
    case FrameType::kWelcome:
    case FrameType::kTakesRows:
    case FrameType::kCutting:
    case FrameType::kDescribe:
    case FrameType::kShards:
    case FrameType::kMoveShard:
    case FrameType::kShardBytes:
    case FrameType::kReply:
    case FrameType::kError:
    case FrameType::kProgress:
    case FrameType::kMarkerRequest:
    case FrameType::kShardsMoved:
      return true;
    default:
      break;
  }
  return IsSequenced(type) || (type >= FrameType::kCreateTable && type <= FrameType::kRestorePoint);
}

bool IsSequenced(FrameType type) { return type >= FrameType::kPush && type <= FrameType::kSettled; }

void SealHeader(FrameHeader* head) { head->header_crc = Crc32c(head, kCheckedHeaderBytes); }

Status ReadHeader(std::string_view bytes, uint32_t max_payload, FrameHeader* head) {
  if (bytes.size() != sizeof *head) return OutOfRange("a frame header has 64 bytes");
  std::memcpy(head, bytes.data(), sizeof *head);
  if (head->magic != kFrameMagic) {
    return InvalidArgument(
        fmt::format("not a parameter-server frame: magic {:#010x}, expected {:#010x}", head->magic,
                    kFrameMagic));
  }
  if (head->header_crc != Crc32c(head, kCheckedHeaderBytes)) {
    return DataLoss("a frame header does not match its checksum");
  }
  if (head->version != kFrameVersion) {
    return FailedPrecondition(
        fmt::format("frame version {}, expected {}: use the same Shoal everywhere", head->version,
                    kFrameVersion));
  }
  if (!IsKnown(head->type) || head->reserved != 0) {
    return InvalidArgument(fmt::format("unknown frame type {}", static_cast<int>(head->type)));
  }
  if (head->payload > max_payload || head->payload % 8 != 0) {
    return ResourceExhausted(
        fmt::format("frame payload of {} bytes, expected a multiple of 8 up to {}", head->payload,
                    max_payload));
  }
  return CheckLengths(*head);
}

Status CheckPayload(const FrameHeader& head, std::string_view payload) {
  if (payload.size() != head.payload ||
      Crc32c(payload.data(), payload.size()) != head.payload_crc) {
    return DataLoss("a frame payload does not match its checksum");
  }
  return Status::Ok();
}

void AppendControlFrame(FrameHeader head, std::string_view body, std::string* out) {
  constexpr char kPadding[8] = {};
  const size_t padded = PaddedTo8(body.size());
  SHOAL_CHECK(padded <= kMaxPayload);
  // Rows have their length in other fields.
  head.body = head.type == FrameType::kRows ? 0 : static_cast<uint32_t>(body.size());
  head.payload = static_cast<uint32_t>(padded);
  head.payload_crc = Crc32c(kPadding, padded - body.size(), Crc32c(body.data(), body.size()));
  SealHeader(&head);
  out->reserve(out->size() + sizeof head + padded);
  out->append(reinterpret_cast<const char*>(&head), sizeof head);
  out->append(body);
  out->append(kPadding, padded - body.size());
}

std::string EncodeError(const Status& status) {
  std::string bytes;
  ByteWriter writer(&bytes);
  writer.Put(status.code());
  writer.PutString(std::string_view(status.message()).substr(0, kMaxErrorBytes));
  return bytes;
}

Status DecodeError(std::string_view body) {
  ByteReader reader(body);
  uint8_t code = 0;
  std::string_view message;
  if (!reader.Get(&code).ok() || !reader.GetString(&message, kMaxErrorBytes).ok() || code == 0 ||
      code > static_cast<uint8_t>(Code::kUnauthenticated)) {
    return DataLoss("the peer answered with an error that cannot be read");
  }
  return Status(static_cast<Code>(code), std::string(message));
}

}  // namespace shoal::ps
