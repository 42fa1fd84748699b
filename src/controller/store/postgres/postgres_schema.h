// The tables of a store in PostgreSQL. Used by postgres_store.cc.
#pragma once

#include <string>

#include "base/status.h"
#include "controller/store/postgres/postgres_connection.h"

namespace shoal::controller {

// Serializes the transactions that write, until their end; within one database. Keeps the positions
// of events in the order in which commits become visible.
inline constexpr const char* kBeginWriting =
    "BEGIN; SELECT pg_advisory_xact_lock(7310585312310751588)";

// Creates the tables, in the schema "shoal", if there are none, and returns the store's id.
// FailedPrecondition if they are of a newer version.
Result<std::string> EnsurePostgresSchema(PostgresConnection* db);

}  // namespace shoal::controller
