// For programs that include "ps/ps.h", as they are: compile them with this header's folder
// (PREFIX/include/shoal/ps_lite) among the include directories, or link shoal::ps_lite.
#pragma once

#include <shoal/ps_lite/dmlc/logging.h>
#include <shoal/ps_lite_compat.h>
