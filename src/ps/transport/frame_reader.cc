#include "ps/transport/frame_reader.h"

namespace shoal::ps {
namespace {

bool CarriesRows(FrameType type) {
  return type == FrameType::kPush || type == FrameType::kPull || type == FrameType::kPushPull ||
         type == FrameType::kCall || type == FrameType::kRows;
}

}  // namespace

Status FrameReader::Take(ByteStream* stream, const FrameHeader& head, std::string_view* payload,
                         bool* whole) {
  const size_t size = FrameBytes(head);
  std::string_view have = stream->view();
  if (have.size() < size || size > kRingFrame) have = stream->Expect(size);
  *whole = have.size() >= size;
  if (!*whole) return Status::Ok();
  *payload = have.substr(sizeof head, head.payload);
  if (stream->in_shared_memory()) {
    if (CarriesRows(head.type)) return Status::Ok();
    if (!stream->gathering()) {
      copied_.assign(*payload);
      *payload = copied_;
    }
  }
  return CheckPayload(head, *payload);
}

}  // namespace shoal::ps
