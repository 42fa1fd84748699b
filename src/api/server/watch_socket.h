// A WebSocket with any number of subscriptions, for pages and followers of many jobs, since a
// browser opens only a few connections to a server (docs/rest.md describes the messages).
#pragma once

#include <string>

#include "api/server/call.h"
#include "api/server/follower.h"

namespace shoal::api {

// The protocol that clients offer: "shoal.v1".
inline constexpr const char* kWatchProtocol = "shoal.v1";

// Answers the call: accepts the WebSocket and serves it until it closes.
void ServeWatch(const Backend& backend, const CallPtr& call);

// The request to follow a job with these arguments (logs, events, task, attempt, from), after the
// position `after` (event_handlers.cc). InvalidArgument.
Result<JobFollowRequest> ReadJobFollow(const Arguments& arguments, const std::string& job,
                                       const std::string& after);
// The position of a cursor, of "now" and of nothing. InvalidArgument.
Result<int64_t> ReadEventsAfter(const Backend& backend, const std::string& after);

}  // namespace shoal::api
