// Opens a store by its URL. Used by `shoal server`.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "controller/store/store.h"

namespace shoal::controller {

// `url`: "sqlite:PATH" (an absolute path, or one below the current directory), or a
// "postgres://…" or "postgresql://…" URL of libpq. InvalidArgument for anything else; else the
// errors of OpenSqliteStore and OpenPostgresStore. No message contains a password.
Result<std::unique_ptr<Store>> OpenStore(const std::string& url);

// True if several servers can use the store at once, by a lease (lease.h).
bool IsSharedStore(const std::string& url);

// The URL as it may be printed: without password and parameters.
std::string PrintableStoreUrl(const std::string& url);

}  // namespace shoal::controller
