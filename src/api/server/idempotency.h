// Idempotency keys of submissions: a request that a client repeats, because it did not get the
// answer, returns the job of the first one.
//
// The key is reserved in a record before the job is stored, and the job carries the record's key as
// a label, so that a repetition finds it also if the server was killed in between.
#pragma once

#include <string>
#include <string_view>

#include "api/server/call.h"

namespace shoal::api {

inline constexpr const char* kIdempotencyLabel = "shoal.idempotency";

struct IdempotentRequest {
  std::string_view user;
  std::string_view key;   // of the header, 1 to 255 printable characters
  std::string_view body;  // a repetition must have the same
};

struct Reservation {
  std::string record_key;
  int64_t version = 0;
  std::string job;  // of the first request; empty: this is the first one
};

// InvalidArgument for a bad key and for one that was used with another body; Unavailable while the
// first request is under way.
Result<Reservation> Reserve(const Backend& backend, const IdempotentRequest& request);
// The submission failed: the key may be used again.
void Release(const Backend& backend, const Reservation& reservation);
void Fulfil(const Backend& backend, const Reservation& reservation, const std::string& job);

}  // namespace shoal::api
