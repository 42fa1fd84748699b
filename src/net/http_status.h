// The status code for a refusal of an HTTP server: one table, for every server
// that we are a client of.
#pragma once

#include "base/status.h"

namespace shoal::net {

// The code of the error that a status of 300 and above stands for. What may go well when it is
// asked again (too many requests, a server or gateway that cannot now) is Unavailable; what has no
// meaning of its own is Internal. Source: RFC 9110, section 15.
Code CodeOfHttp(int status);

}  // namespace shoal::net
