// The unit of everything that crosses a parameter server's connection: a fixed 64-byte header and a
// payload, both checksummed (docs/formats/ps-wire.md).
//
// Written and read by the TCP transport; the in-process one passes headers alone. All bytes read
// here are untrusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "ps/types.h"

namespace shoal::ps {

inline constexpr uint32_t kFrameMagic = 0x53504853;  // "SHPS"
inline constexpr uint16_t kFrameVersion = 1;
inline constexpr uint32_t kMaxPayload = 64u << 20;
// Before the peer has proved the token.
inline constexpr uint32_t kMaxHandshakePayload = 4096;

// Arguments of kCheckpointStart, from a client that accepts another client's checkpoint for its
// own, and of kCheckpointAbort, from one that waits for none any more.
inline constexpr uint64_t kStartWaits = 1;
inline constexpr uint64_t kNoCheckpoint = UINT64_MAX;

enum class FrameType : uint8_t {
  kNone = 0,
  // Handshake
  kChallenge = 1,
  kProof = 2,
  kWelcome = 3,
  // Row operations and markers: `id` is a sequence number of (client, lane), without gaps,
  // answered in order
  kPush = 16,
  kPull = 17,
  kPushPull = 18,
  kMarker = 19,
  kAck = 20,      // to kPush, kMarker, kSettled
  kRows = 21,     // to kPull, kPushPull
  kRefused = 22,  // to any of them: payload is an error
  kCall = 23,     // a server function over rows
  kSettled = 24,  // client → server 0: what it sent before its markers is answered
  // Control: `id` is free, answered in any order by kReply or kError
  kCreateTable = 32,
  kClock = 33,
  kBarrier = 34,
  kPutBlob = 35,
  kGetBlob = 36,
  kListBlobs = 37,
  kDeleteBlob = 38,
  kGetProgress = 39,
  kLeave = 40,
  kReportDead = 41,
  kCheckpointStart = 42,
  kCheckpointBegin = 43,
  kCheckpointWrite = 44,
  kCheckpointCommit = 45,
  kCheckpointAbort = 46,
  kReplicate = 47,     // primary → backup: `id` is the position of the entry in the body
  kRestorePoint = 48,  // server → server 0: which checkpoint it restored, see restore_point.h
  kTakesRows = 54,     // argument 0: it is drained, and gets no rows by itself; 1: no longer
  kCutting = 55,       // i64: the checkpoint that is under way, or -1
  kDescribe = 56,
  kShards = 57,      // which lane owns which shard: what the asker knows, what the asked one knows
  kMoveShard = 58,   // have the shard's present server give it to another
  kShardBytes = 59,  // what a lane's shards weigh
  kReply = 60,
  kError = 61,
  // Without an answer
  kProgress = 64,       // client → server 0
  kMarkerRequest = 65,  // server 0 → client: `id` is the checkpoint
  kShardsMoved = 66,    // server → client: ask it for its kShards
};

// As it lies in memory and on the wire, little-endian.
// In a clock's `waits` or a barrier's argument: do not wait, but answer which workers would be
// waited for.
inline constexpr char kAsksWhoIsLate = 2;
// In a barrier's argument: the worker leaves the barrier that it entered with the request in the
// body.
inline constexpr char kLeavesBarrier = 3;

struct FrameHeader {
  uint32_t magic = kFrameMagic;
  uint16_t version = kFrameVersion;
  FrameType type = FrameType::kNone;
  uint8_t key_bytes = 0;     // row operations: width of a key, 4 or 8, or how they are coded
  uint32_t payload = 0;      // bytes that follow, a multiple of 8
  uint32_t table = 0;        // row operations
  uint64_t id = 0;           // sequence number, request id or checkpoint
  uint32_t rows = 0;         // row operations: how many
  uint32_t dim = 0;          // row operations: floats a row
  uint64_t argument = 0;     // control: see docs/formats/ps-wire.md; row operations: keys' digest
  uint32_t body = 0;         // control: payload bytes without the padding; calls: of the argument
  ValueType values{};        // row frames: of the rows in the payload
  ValueType answer{};        // row operations: of the rows asked for
  uint8_t key_slot = 0;      // row operations: where the keys are remembered, 1..kKeySlots; 0: not
  uint8_t flags = 0;         // calls: kCallHasDeltas, kCallWantsRows; kRefused: why; kSettled
  uint32_t key_area = 0;     // row operations: bytes of coded keys in the payload, padded to 8
  uint32_t reserved = 0;     // zero
  uint32_t payload_crc = 0;  // CRC-32C of the payload
  uint32_t header_crc = 0;   // CRC-32C of the 60 bytes before it
};
static_assert(sizeof(FrameHeader) == 64);

// FrameHeader::key_bytes besides 4 and 8. Deltas: the keys ascend, see key_codec.h. Remembered: the
// payload has none, they are those of `key_slot`.
inline constexpr uint8_t kKeysAreDeltas = 1;
inline constexpr uint8_t kKeysAreRemembered = 2;
inline constexpr uint8_t kKeySlots = 64;             // remembered lists a connection
inline constexpr uint32_t kMaxCodedKeys = 1u << 16;  // of a frame whose keys are not raw
inline constexpr uint8_t kCallHasDeltas = 1;
inline constexpr uint8_t kCallWantsRows = 2;
// FrameHeader::flags of kRefused. Moved: nothing was applied, for some of the rows are another
// lane's now. With Applied: it had been applied before they went, and only asks for them again.
inline constexpr uint8_t kRefusedMoved = 1;
inline constexpr uint8_t kRefusedApplied = 2;
// Of kSettled: something that had been sent before a marker was refused after another marker had
// gone out, for its rows had moved. The cut lacks it.
inline constexpr uint8_t kSettledLate = 1;

// Bytes of keys in the payload of a row operation: padded so that the rows lie on 8 bytes.
constexpr size_t KeyArea(size_t rows, size_t key_bytes) { return (rows * key_bytes + 7) / 8 * 8; }
constexpr size_t PaddedTo8(size_t bytes) { return (bytes + 7) / 8 * 8; }

// Of row operations.
constexpr bool HasDeltas(const FrameHeader& head) {
  return head.type == FrameType::kPush || head.type == FrameType::kPushPull ||
         (head.type == FrameType::kCall && (head.flags & kCallHasDeltas) != 0);
}
constexpr bool WantsRows(const FrameHeader& head) {
  return head.type == FrameType::kPull || head.type == FrameType::kPushPull ||
         (head.type == FrameType::kCall && (head.flags & kCallWantsRows) != 0);
}
constexpr bool Writes(const FrameHeader& head) { return head.type != FrameType::kPull; }

// A call's argument as it travels: string name of the function, then what it is called with.
inline constexpr size_t kMaxCallArgument = sizeof(uint32_t) + kMaxNameBytes + kMaxFunctionArgument;

// The payload of a row operation is a call's argument, the keys, the rows, each padded to 8.
constexpr size_t ArgumentArea(const FrameHeader& head) {
  return head.type == FrameType::kCall ? PaddedTo8(head.body) : 0;
}
constexpr size_t KeyAreaOf(const FrameHeader& head) {
  return head.key_bytes >= 4 ? KeyArea(head.rows, head.key_bytes) : head.key_area;
}
// Rows in the payload, without padding.
constexpr size_t ValueBytes(const FrameHeader& head) {
  return HasDeltas(head) || head.type == FrameType::kRows
             ? head.rows * WireRowBytes(head.values, head.dim)
             : 0;
}
// Rows of the answer, without padding; 0: it is an acknowledgement.
constexpr size_t AnswerBytes(const FrameHeader& head) {
  return WantsRows(head) ? head.rows * WireRowBytes(head.answer, head.dim) : 0;
}

bool IsKnown(FrameType type);
// True for row operations and markers, and for answers to them.
bool IsSequenced(FrameType type);

// Sets header_crc; the other fields are the caller's.
void SealHeader(FrameHeader* head);

// Reads a header from exactly 64 bytes and checks magic, version, type, checksum, and every length
// against the others and against `max_payload`. The payload's checksum is not looked at.
Status ReadHeader(std::string_view bytes, uint32_t max_payload, FrameHeader* head);
// Checks the payload's checksum.
Status CheckPayload(const FrameHeader& head, std::string_view payload);

// Appends header and padded body of a control frame to `out`; sets lengths and checksums.
void AppendControlFrame(FrameHeader head, std::string_view body, std::string* out);

// An error as a payload, and back. The decoder bounds what it reads and never returns OK.
std::string EncodeError(const Status& status);
Status DecodeError(std::string_view body);

}  // namespace shoal::ps
