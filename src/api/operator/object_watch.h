// Follows the ShoalJobs of a namespace or a cluster by list and watch: lists them, watches from
// that version on, and lists again where the version has expired (410 Gone) or is not known.
//
// The requests come in through ObjectFeed, so that tests can lose them. Used by operator.cc.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "api/operator/shoal_job.h"
#include "base/status.h"

namespace shoal::api {

class ObjectFeed {
 public:
  virtual ~ObjectFeed() = default;
  virtual Result<ShoalJobList> List() = 0;
  // Calls `on_line` for each line until the stream ends, which is OK, or a call fails. OutOfRange
  // if the version has expired.
  virtual Status Watch(const std::string& version,
                       const std::function<Status(std::string_view)>& on_line) = 0;
  // Waits before the next attempt; `failures`: so many in a row, from 1. False: ends.
  virtual bool Pause(int failures) = 0;
  virtual bool ending() = 0;
};

struct ObjectSink {
  std::function<void(const ShoalJobList&)> on_list;
  std::function<void(const ShoalJob&)> on_change;
  std::function<void(const ShoalJob&)> on_delete;
  // The objects cannot be read, once until they can be again.
  std::function<void(const Status&)> on_trouble;
};

// Returns when the feed ends.
void FollowObjects(ObjectFeed* feed, const ObjectSink& sink);

}  // namespace shoal::api
