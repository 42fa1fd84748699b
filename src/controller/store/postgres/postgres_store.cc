#include "controller/store/postgres/postgres_store.h"

#include <utility>

#include "controller/store/postgres/postgres_connection.h"
#include "controller/store/postgres/postgres_database.h"
#include "controller/store/postgres/postgres_schema.h"
#include "controller/store/sql/sql_store.h"

namespace shoal::controller {

Result<std::unique_ptr<Store>> OpenPostgresStore(const std::string& url,
                                                 const PostgresOptions& options) {
  TRY_ASSIGN(std::unique_ptr<PostgresConnection> connection, PostgresConnection::Open(url));
  TRY_ASSIGN(std::string store_id, EnsurePostgresSchema(connection.get()));
  const Clock* const clock =
      options.lease_clock == nullptr ? RealClock::Get() : options.lease_clock;
  return MakeSqlStore(std::make_unique<PostgresDatabase>(url, std::move(connection), options),
                      std::move(store_id), clock);
}

}  // namespace shoal::controller
