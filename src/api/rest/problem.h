// Errors as replies: application/problem+json (RFC 9457), whose `detail` is the sentence that the
// command would print.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "net/http/server_exchange.h"

namespace shoal::api {

// One wrong field of a request. `line` and `column` are those of a job file; 0: none.
struct FieldError {
  std::string field;
  std::string message;
  int line = 0;
  int column = 0;
};

// The HTTP status of an error, and back. Codes without a counterpart become 500 and kUnknown.
int HttpStatusOf(Code code);
Code CodeOfHttpStatus(int status);

net::HttpServerReply Problem(int status, std::string_view detail);
net::HttpServerReply Problem(const Status& status);
// The same for what parameters of a query caused: InvalidArgument is 400 then, as for parameters
// that the router refuses, and not 422, which is for bodies.
net::HttpServerReply QueryProblem(const Status& status);
// 422 with the list `errors`.
net::HttpServerReply Problem(const std::vector<FieldError>& errors);

// Header with the address of the server that leads. Clients follow it only to addresses that their
// user has named.
inline constexpr const char* kLeaderHeader = "Shoal-Leader";
// 503 with Retry-After, of a server that does not lead. `leader`: the URL, or empty if none is
// known.
net::HttpServerReply NotLeadingReply(const std::string& leader);

// The lines of a job file's errors, "job.yaml:14:15: roles.worker.replicas: got -1, …", taken
// apart. A line of another form becomes an error without a field.
std::vector<FieldError> ParseJobFileErrors(const std::string& message, std::string_view file);

// The error that a reply with this status and body stands for; `server` is named where the reply
// has no sentence. Used by the client.
Status StatusOfReply(int status, std::string_view body, const std::string& server);

}  // namespace shoal::api
