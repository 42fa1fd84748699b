#include "controller/store/postgres/pq_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace shoal::controller {
namespace {

constexpr const char* kName = "libpq.so.5";

template <typename Function>
void Find(void* library, const char* name, Function* function, const char** missing) {
  *function = reinterpret_cast<Function>(::dlsym(library, name));
  if (*function == nullptr && *missing == nullptr) *missing = name;
}

// The first function that is missing; null: none.
const char* FindAll(void* library, PqLibrary* pq) {
  const char* missing = nullptr;
#define SHOAL_FIND(name) Find(library, "PQ" #name, &pq->name, &missing)
  SHOAL_FIND(connectdbParams);
  SHOAL_FIND(conninfoParse);
  SHOAL_FIND(conninfoFree);
  SHOAL_FIND(freemem);
  SHOAL_FIND(finish);
  SHOAL_FIND(status);
  SHOAL_FIND(transactionStatus);
  SHOAL_FIND(errorMessage);
  SHOAL_FIND(serverVersion);
  SHOAL_FIND(parameterStatus);
  SHOAL_FIND(setNoticeProcessor);
  SHOAL_FIND(socket);
  SHOAL_FIND(consumeInput);
  SHOAL_FIND(notifies);
  SHOAL_FIND(exec);
  SHOAL_FIND(prepare);
  SHOAL_FIND(execPrepared);
  SHOAL_FIND(resultStatus);
  SHOAL_FIND(resultErrorField);
  SHOAL_FIND(resultErrorMessage);
  SHOAL_FIND(ntuples);
  SHOAL_FIND(getvalue);
  SHOAL_FIND(getlength);
  SHOAL_FIND(clear);
#undef SHOAL_FIND
  return missing;
}

}  // namespace

Result<PqLibrary> OpenPq(const char* name) {
  void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return FailedPrecondition(
        fmt::format("a store in PostgreSQL needs its client library, which cannot be opened ({}); "
                    "install it (Debian: libpq5), or use sqlite:PATH",
                    why == nullptr ? name : why));
  }
  PqLibrary pq;
  if (const char* const missing = FindAll(library, &pq); missing != nullptr) {
    return FailedPrecondition(fmt::format(
        "{}: has no function {}; install PostgreSQL's client library 12 or later (Debian: libpq5)",
        name, missing));
  }
  return pq;
}

Result<const PqLibrary*> Pq() {
  static const Result<PqLibrary> opened = OpenPq(kName);
  if (!opened.ok()) return opened.status();
  return &*opened;
}

}  // namespace shoal::controller
