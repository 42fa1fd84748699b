// One control request on its way through ServerCore's services.
#pragma once

#include <string_view>

#include "ps/lane/lane.h"

namespace shoal::ps {

// Lives during the handler's call, under the lock of the lane that the request came to. A handler
// either returns an error, which ServerCore sends as the answer, or takes `answer` and calls it
// once, now or later.
struct ControlRequest {
  const Hello& from;
  Session* session;  // null for a request of another server
  const FrameHeader& head;
  std::string_view body;
  Answer answer;
};

// Handles the control requests of a server; implemented by ServerCore. A backup passes the requests
// of its primary's log through it.
class ControlHandler {
 public:
  virtual ~ControlHandler() = default;
  // Under the lock of the request's lane.
  virtual Status Handle(ControlRequest* request) = 0;
  // The worker counts no more in clocks, barriers and checkpoints. Under lane 0's lock.
  virtual void RemoveWorker(int worker) = 0;
};

// Sends the answer to request `id` over `peer`, if it is still connected; waits for the backup
// where there is one. To be called under the lane's lock; `lane` must outlive it.
Answer MakeAnswer(const std::shared_ptr<ServerConnection>& peer, uint64_t id, Lane* lane);

// Appends a control frame that changes state to the lane's replication log. Does nothing for other
// frames, and without a backup. Under the lane's lock.
void LogControl(Lane* lane, const Hello& from, const FrameHeader& head, std::string_view body);
// Whether a backup must apply control frames of this type as well.
bool ChangesState(FrameType type);

}  // namespace shoal::ps
