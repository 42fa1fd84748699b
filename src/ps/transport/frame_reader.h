// Frames out of the bytes of a connection's stream: where they lie, without copying, as far as the
// stream allows it.
//
// Used by both ends of a connection (client_connection.cc, tcp_connection.cc).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "ps/transport/byte_stream.h"
#include "ps/wire/frame.h"

namespace shoal::ps {

// One per connection; a call for each step of each frame: Peek, Take, the stream's Consume. Belongs
// to the thread that receives.
class FrameReader {
 public:
  // The header of the next frame, if *there. DataLoss or InvalidArgument: bytes that are no header,
  // or of a frame whose payload is longer than `max_payload`.
  static Status Peek(const ByteStream& stream, uint32_t max_payload, FrameHeader* head,
                     bool* there) {
    const std::string_view have = stream.view();
    *there = have.size() >= sizeof *head;
    return *there ? ReadHeader(have.substr(0, sizeof *head), max_payload, head) : Status::Ok();
  }

  // The payload of the frame whose header Peek gave, if all of it is there (*whole); until then the
  // stream gathers it. Valid until the frame is consumed. DataLoss: its checksum is wrong.
  //
  // From shared memory, payloads of row frames are neither copied nor checked: their keys must be
  // copied before they are checked and used. Everything else is out of the other end's reach.
  Status Take(ByteStream* stream, const FrameHeader& head, std::string_view* payload, bool* whole);

 private:
  std::string copied_;
};

// Bytes of a frame with this header.
inline size_t FrameBytes(const FrameHeader& head) { return sizeof head + head.payload; }

}  // namespace shoal::ps
