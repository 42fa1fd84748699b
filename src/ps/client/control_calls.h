// Control requests of a client, waited for.
#pragma once

#include <string>
#include <vector>

#include "ps/client/channel.h"

namespace shoal::ps {

// One request over one channel; its reply. DeadlineExceeded, or the error that the server sent.
Result<std::string> SendRequest(Channel* channel, FrameType type, uint64_t argument,
                                std::string body, TimePoint deadline);
// The same request over all these channels at once; the first error, once all are answered. Errors
// of channels that have been suspended meanwhile do not count.
Status SendRequestToEach(const std::vector<Channel*>& channels, const FrameHeader& head,
                         const std::string& body, TimePoint deadline);

}  // namespace shoal::ps
