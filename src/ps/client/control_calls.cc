#include "ps/client/control_calls.h"

namespace shoal::ps {

Result<std::string> SendRequest(Channel* channel, FrameType type, uint64_t argument,
                                std::string body, TimePoint deadline) {
  FrameHeader head;
  head.type = type;
  head.argument = argument;
  return channel->FinishCall(channel->StartCall(head, std::move(body), false), deadline);
}

Status SendRequestToEach(const std::vector<Channel*>& channels, const FrameHeader& head,
                         const std::string& body, TimePoint deadline) {
  std::vector<std::shared_ptr<Call>> calls;
  for (Channel* channel : channels) calls.push_back(channel->StartCall(head, body, false));
  Status first;
  for (size_t i = 0; i < calls.size(); ++i) {
    const auto reply = channels[i]->FinishCall(calls[i], deadline);
    if (first.ok() && !reply.ok() && !channels[i]->suspended()) first = reply.status();
  }
  return first;
}

}  // namespace shoal::ps
