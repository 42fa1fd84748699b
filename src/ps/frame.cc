#include "ps/frame.h"

#include <fmt/format.h>

#include <cstring>

#include "base/bytes.h"
#include "ps/types.h"

namespace shoal::ps {
namespace {

constexpr size_t kCheckedHeaderBytes = 60;
constexpr size_t kMaxErrorBytes = 4096;

bool CarriesRows(FrameType type) {
  return type == FrameType::kPush || type == FrameType::kPull || type == FrameType::kPushPull ||
         type == FrameType::kRows;
}

// What the payload of a row frame must measure; the fields were bounded before, so nothing
// overflows 64 bits.
uint64_t RowPayload(const FrameHeader& head) {
  const uint64_t keys = KeyArea(head.rows, head.key_bytes);
  const uint64_t values = PaddedTo8(uint64_t{head.rows} * head.dim * sizeof(float));
  return head.type == FrameType::kPull ? keys : keys + values;
}

Status CheckLengths(const FrameHeader& head) {
  if (!CarriesRows(head.type)) {
    if (PaddedTo8(head.body) != head.payload || head.rows != 0 || head.dim != 0) {
      return InvalidArgument(fmt::format("frame of type {}: body {} does not fit payload {}",
                                         static_cast<int>(head.type), head.body, head.payload));
    }
    return Status::Ok();
  }
  const uint64_t answer = uint64_t{head.rows} * head.dim * sizeof(float);
  const bool keyed = head.type != FrameType::kRows;
  const bool key_width_ok =
      keyed ? head.key_bytes == 4 || head.key_bytes == 8 : head.key_bytes == 0;
  if (!key_width_ok || head.dim < 1 || head.dim > kMaxDim || head.rows < 1 || head.body != 0 ||
      answer > kMaxPayload || RowPayload(head) != head.payload) {
    return InvalidArgument(fmt::format(
        "row frame of type {}: {} rows of {} floats with keys of {} bytes do not fit "
        "payload {}",
        static_cast<int>(head.type), head.rows, head.dim, head.key_bytes, head.payload));
  }
  return Status::Ok();
}

}  // namespace

bool IsKnown(FrameType type) {
  switch (type) {
    case FrameType::kChallenge:
    case FrameType::kProof:
    case FrameType::kWelcome:
    case FrameType::kReply:
    case FrameType::kError:
    case FrameType::kProgress:
    case FrameType::kMarkerRequest:
      return true;
    default:
      break;
  }
  return IsSequenced(type) ||
         (type >= FrameType::kCreateTable && type <= FrameType::kCheckpointAbort);
}

bool IsSequenced(FrameType type) { return type >= FrameType::kPush && type <= FrameType::kRefused; }

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
  if (!IsKnown(head->type) || head->reserved != 0 || head->reserved2 != 0) {
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
  head.body = static_cast<uint32_t>(body.size());
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
