// Points in time as people write them on the command line. Used by `shoal logs`.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/status.h"

namespace shoal::cli {

// "10m", "1h30m": that long before `now`; "09:30", "09:30:15": today, in this machine's time zone;
// "2026-11-25", "2026-11-25 09:30", "2026-11-25T09:30:15.250": likewise; with "Z" or "+02:00" at
// the end in that zone. InvalidArgument names `option`.
Result<WallTime> ParseTimeArgument(const std::string& option, const std::string& text,
                                   WallTime now);

}  // namespace shoal::cli
