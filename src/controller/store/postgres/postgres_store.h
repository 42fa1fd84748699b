// The store that several servers share: a database of PostgreSQL 12 or later. Its tables are in the
// schema "shoal".
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "controller/store/store.h"

namespace shoal::controller {

struct PostgresOptions {
  // How long a call waits for a database that cannot be reached, before it is Unavailable.
  Duration patience = std::chrono::seconds(10);
  // Decides when leases expire; null: the database's clock, which all servers share. Outlives the
  // store.
  const Clock* lease_clock = nullptr;
};

// Opens the store, and creates the tables if there are none. `url`: postgres://USER@HOST/DATABASE,
// as libpq takes it (postgresql.org/docs/15/libpq-connect.html); no message contains its password.
// Errors say whether the client library is missing, the database cannot be reached, refuses the
// user, or has tables of a newer version.
Result<std::unique_ptr<Store>> OpenPostgresStore(const std::string& url,
                                                 const PostgresOptions& options = {});

}  // namespace shoal::controller
