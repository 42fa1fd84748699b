#include "api/server/idempotency.h"

#include <algorithm>
#include <utility>

#include "base/id.h"
#include "base/log.h"

namespace shoal::api {
namespace {

constexpr const char* kKind = "idempotency";
constexpr size_t kMaxKey = 255;
constexpr int kTries = 10;
// A reservation of this start of the server without a job that is older was left by a fault.
constexpr std::chrono::minutes kUnderWay{1};

Status CheckKey(std::string_view key) {
  const bool good = key.size() <= kMaxKey &&
                    std::ranges::all_of(key, [](char c) { return c > ' ' && c < '\x7f'; });
  if (good) return Status::Ok();
  return InvalidArgument("header Idempotency-Key: expected 1 to 255 printable characters");
}

// The job that a killed server stored for this reservation; empty if there is none.
Result<std::string> FindLabelled(const Backend& backend, const std::string& record_key) {
  controller::JobFilter filter;
  filter.labels[kIdempotencyLabel] = record_key;
  TRY_ASSIGN(const controller::JobPage page, backend.store->ListPage(filter, "", 1));
  return page.jobs.empty() ? std::string() : page.jobs.front().id;
}

// Makes the record and sets `version`, or returns the one that is there. A request that fails
// removes its record, possibly between the two.
Result<controller::Record> PutOrGet(const Backend& backend, const std::string& key,
                                    const json::object& body, int64_t* version) {
  for (int i = 0; i < kTries; ++i) {
    const Result<int64_t> made =
        backend.records->Put(kKind, key, body, controller::kAbsent, backend.clock->Wall());
    if (made.ok()) {
      *version = *made;
      return controller::Record{};
    }
    if (made.status().code() != Code::kAlreadyExists) return made.status();
    Result<controller::Record> record = backend.records->Get(kKind, key);
    if (record.ok() || record.status().code() != Code::kNotFound) return record;
  }
  return Unavailable("other requests with this Idempotency-Key come and fail; try again");
}

}  // namespace

Result<Reservation> Reserve(const Backend& backend, const IdempotentRequest& request) {
  TRY(CheckKey(request.key));
  Reservation reservation;
  reservation.record_key = Sha256Hex(std::string(request.user) + '\n' + std::string(request.key));
  const std::string digest = Sha256Hex(request.body);
  const WallTime now = backend.clock->Wall();
  const json::object body{{"digest", digest}, {"run", backend.start.run}};
  TRY_ASSIGN(const controller::Record record,
             PutOrGet(backend, reservation.record_key, body, &reservation.version));
  if (reservation.version != 0) return reservation;
  if (GetStringOr(record.body, "digest", "") != digest)
    return InvalidArgument(
        "header Idempotency-Key: it was used with another request; use a new one");
  reservation.version = record.version;
  reservation.job = GetStringOr(record.body, "job", "");
  if (!reservation.job.empty()) return reservation;
  TRY_ASSIGN(reservation.job, FindLabelled(backend, reservation.record_key));
  if (!reservation.job.empty()) return reservation;
  // A clock that was set back does not prolong the reservation. The request of an earlier start of
  // the server, or of an earlier leader, has ended.
  const auto age = now - record.changed;
  if (GetStringOr(record.body, "run", "") == backend.start.run && age >= WallTime::duration(0) &&
      age < kUnderWay)
    return Unavailable("the first request with this Idempotency-Key is under way; try again");
  // Of two repetitions at the same time one takes the reservation over.
  TRY_ASSIGN(reservation.version,
             backend.records->Put(kKind, reservation.record_key,
                                  {{"digest", digest}, {"run", backend.start.run}},
                                  reservation.version, now));
  return reservation;
}

void Release(const Backend& backend, const Reservation& reservation) {
  const Status released = backend.records->Delete(kKind, reservation.record_key,
                                                  reservation.version, backend.clock->Wall());
  if (!released.ok()) LogWarning("an idempotency key stays reserved: {}", released.message());
}

void Fulfil(const Backend& backend, const Reservation& reservation, const std::string& job) {
  const Result<controller::Record> record = backend.records->Get(kKind, reservation.record_key);
  if (!record.ok()) return LogWarning("an idempotency key is lost: {}", record.status().message());
  json::object body = record->body;
  body["job"] = job;
  const Status stored =
      backend.records
          ->Put(kKind, reservation.record_key, body, reservation.version, backend.clock->Wall())
          .status();
  // A repetition finds the job by its label.
  if (!stored.ok()) LogWarning("an idempotency key is not stored: {}", stored.message());
}

}  // namespace shoal::api
