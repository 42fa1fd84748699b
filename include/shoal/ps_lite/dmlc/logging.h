// For programs that include "dmlc/logging.h"; see ../ps/ps.h. Checks end the process, they do not
// throw.
#pragma once

#include <stdexcept>
#include <string>

#include <shoal/ps_lite_api/logging.h>

namespace dmlc {

struct Error : std::runtime_error {
  explicit Error(const std::string& what) : std::runtime_error(what) {}
};

inline void InitLogging(const char* /*argv0*/) {}

}  // namespace dmlc
