// A client's connection as a server's services see it: an address for answers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "ps/wire/frame.h"

namespace shoal::ps {

// Reply and CloseAfterFlush are called under the lock of the connection's lane and only queue;
// FlushReplies is called after the lock was released, by the thread that held it, and sends or
// delivers.
class ServerConnection {
 public:
  virtual ~ServerConnection() = default;
  virtual void Reply(const FrameHeader& head, std::string_view body) = 0;
  // Closes the connection once everything that was queued before has been sent.
  virtual void CloseAfterFlush(const Status& why) = 0;
  virtual void FlushReplies() = 0;
  // Bytes of answers that the client has not taken, when last looked at. Any thread.
  virtual size_t queued() const { return 0; }
};

// Answers one control request, at once or later, at most once. Called under the lane's lock. Does
// nothing when the connection is gone: the client asks again after it has reconnected.
using Answer = std::function<void(const Status& status, std::string_view body)>;

}  // namespace shoal::ps
