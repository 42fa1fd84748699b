#include "controller/store/sqlite_check.h"

#include "controller/store/sqlite_connection.h"

namespace shoal::controller {
namespace {

constexpr int kBusyMs = 10'000;
constexpr size_t kMostShown = 10;

// Jobs with rows of the table that are not JSON, with their numbers.
Status FindBadRows(SqliteConnection* db, const char* table, std::vector<std::string>* damage) {
  TRY_ASSIGN(Statement select,
             db->Prepare(std::string("SELECT job, count(*) FROM ") + table +
                         " WHERE NOT json_valid(body) GROUP BY job ORDER BY job LIMIT 10"));
  while (true) {
    TRY_ASSIGN(const bool row, select.Step());
    if (!row) return Status::Ok();
    damage->push_back(select.Text(0) + ": " + std::to_string(select.Int(1)) + " of its " + table +
                      " cannot be read");
  }
}

}  // namespace

Result<std::vector<std::string>> FindStoreDamage(const std::filesystem::path& database) {
  TRY_ASSIGN(SqliteConnection db, SqliteConnection::Open(database, kBusyMs));
  std::vector<std::string> damage;
  {
    TRY_ASSIGN(Statement check, db.Prepare("PRAGMA quick_check(10)"));
    while (damage.size() < kMostShown) {
      TRY_ASSIGN(const bool row, check.Step());
      if (!row) break;
      if (check.Text(0) != "ok") damage.push_back("the file: " + check.Text(0));
    }
  }
  if (!damage.empty()) return damage;  // rows of such a file mean little
  TRY(FindBadRows(&db, "events", &damage));
  TRY(FindBadRows(&db, "tasks", &damage));
  return damage;
}

}  // namespace shoal::controller
