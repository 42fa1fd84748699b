// The secret of remote shells, derived from the job's token so that a proof made here is not valid
// at the coordinator. Used by remote_shell_server.cc and remote_shell.cc.
#pragma once

#include <string>
#include <string_view>

#include "base/id.h"

namespace shoal::rendezvous {

inline std::string RemoteShellToken(std::string_view job_token) {
  return HmacSha256Hex(job_token, "shoal remote shell 1");
}

}  // namespace shoal::rendezvous
