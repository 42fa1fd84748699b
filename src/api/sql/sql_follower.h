// Delivers the events of an SQL session to one stream.
#pragma once

#include <cstdint>
#include <memory>

#include "api/server/follower.h"
#include "api/sql/sql_sessions.h"

namespace shoal::api {

std::unique_ptr<Follower> MakeSqlFollower(SqlSessionPtr session, int64_t after,
                                          std::shared_ptr<Sink> sink);

}  // namespace shoal::api
