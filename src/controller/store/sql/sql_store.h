// The store over any SqlDatabase. Used by sqlite_store.cc and postgres/postgres_store.cc.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "controller/store/sql/sql_database.h"
#include "controller/store/store.h"

namespace shoal::controller {

// `clock` decides when leases expire, where the dialect has no clock of its own; it must outlive
// the store.
std::unique_ptr<Store> MakeSqlStore(std::unique_ptr<SqlDatabase> database, std::string store_id,
                                    const Clock* clock);

}  // namespace shoal::controller
