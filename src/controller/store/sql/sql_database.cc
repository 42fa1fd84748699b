#include "controller/store/sql/sql_database.h"

namespace shoal::controller {

Status Statement::Run() {
  TRY_ASSIGN(const bool row, Step());
  return row ? Internal("a statement returned an unexpected row") : Status::Ok();
}

}  // namespace shoal::controller
