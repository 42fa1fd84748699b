#include "engine/kubernetes/websocket_frames.h"

#include "base/base64.h"
#include "base/id.h"
#include "engine/kubernetes/kube_config.h"

namespace shoal::engine::kubernetes {
namespace {

constexpr size_t kLongest = 16 << 20;
constexpr unsigned kBinary = 2;
constexpr unsigned kCloseFrame = 8;
constexpr unsigned kPingFrame = 9;
constexpr unsigned kPongFrame = 10;
constexpr size_t kShort = 126;   // lengths from here on take two bytes,
constexpr size_t kLong = 65536;  // from here on eight

std::string Frame(unsigned opcode, std::string_view bytes) {
  std::string out;
  out += static_cast<char>(0x80 | opcode);
  const size_t size = bytes.size();
  const int extra = size < kShort ? 0 : size < kLong ? 2 : 8;
  out += static_cast<char>(0x80 | (extra == 0 ? size : extra == 2 ? 126 : 127));
  for (int i = extra - 1; i >= 0; --i) out += static_cast<char>(size >> (8 * i) & 0xff);
  const uint64_t mask = RandomSeed();
  char key[4];
  for (size_t i = 0; i < 4; ++i) key[i] = static_cast<char>(mask >> (8 * i) & 0xff);
  out.append(key, 4);
  for (size_t i = 0; i < size; ++i) out += static_cast<char>(bytes[i] ^ key[i % 4]);
  return out;
}

}  // namespace

std::string EncodeWebSocketMessage(std::string_view bytes) { return Frame(kBinary, bytes); }
std::string EncodeWebSocketPong(std::string_view bytes) { return Frame(kPongFrame, bytes); }
std::string EncodeWebSocketClose() { return Frame(kCloseFrame, ""); }

std::string NewWebSocketKey() {
  std::string bytes;
  for (int i = 0; i < 2; ++i) {
    const uint64_t seed = RandomSeed();
    for (int j = 0; j < 8; ++j) bytes += static_cast<char>(seed >> (8 * j) & 0xff);
  }
  return EncodeBase64(bytes);
}

Status WebSocketReader::Feed(std::string_view bytes, std::vector<Message>* messages) {
  rest_ += bytes;
  size_t at = 0;
  for (;;) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(rest_[at + i]); };
    const size_t there = rest_.size() - at;
    if (there < 2) break;
    const bool last = (byte(0) & 0x80) != 0;
    const unsigned opcode = byte(0) & 15U;
    if ((byte(0) & 0x70) != 0 || (byte(1) & 0x80) != 0)
      return DataLoss("what came is no WebSocket frame");
    size_t size = byte(1) & 127U;
    size_t head = 2;
    const size_t extra = size == 126 ? 2 : size == 127 ? 8 : 0;
    if (there < head + extra) break;
    if (extra > 0) size = 0;
    for (size_t i = 0; i < extra; ++i) size = size << 8 | byte(head + i);
    head += extra;
    if (size > kLongest || message_.size() + size > kLongest)
      return DataLoss("a WebSocket message is longer than 16 MiB");
    if (there < head + size) break;
    const std::string_view body = std::string_view(rest_).substr(at + head, size);
    at += head + size;
    if (opcode == kPingFrame) {
      messages->push_back({Message::Kind::kPing, std::string(body)});
    } else if (opcode == kCloseFrame) {
      messages->push_back({Message::Kind::kClose, std::string(body)});
    } else if (opcode <= kBinary) {
      message_ += body;
      if (last) messages->push_back({Message::Kind::kData, std::exchange(message_, {})});
    } else if (opcode != kPongFrame) {
      return DataLoss("what came is no WebSocket frame");
    }
  }
  rest_.erase(0, at);
  return Status::Ok();
}

}  // namespace shoal::engine::kubernetes
