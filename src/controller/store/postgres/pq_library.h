// libpq, the client library of PostgreSQL. Nothing is linked: the library is opened when the first
// store of PostgreSQL is (ADR 219). Used by postgres_connection.cc and postgres_watch.cc.
#pragma once

#include <libpq-fe.h>

#include "base/status.h"

namespace shoal::controller {

// The functions that are called, under their names without "PQ".
struct PqLibrary {
  decltype(&PQconnectdbParams) connectdbParams = nullptr;
  decltype(&PQconninfoParse) conninfoParse = nullptr;
  decltype(&PQconninfoFree) conninfoFree = nullptr;
  decltype(&PQfreemem) freemem = nullptr;
  decltype(&PQfinish) finish = nullptr;
  decltype(&PQstatus) status = nullptr;
  decltype(&PQtransactionStatus) transactionStatus = nullptr;
  decltype(&PQerrorMessage) errorMessage = nullptr;
  decltype(&PQserverVersion) serverVersion = nullptr;
  decltype(&PQparameterStatus) parameterStatus = nullptr;
  decltype(&PQsetNoticeProcessor) setNoticeProcessor = nullptr;
  decltype(&PQsocket) socket = nullptr;
  decltype(&PQconsumeInput) consumeInput = nullptr;
  decltype(&PQnotifies) notifies = nullptr;
  decltype(&PQexec) exec = nullptr;
  decltype(&PQprepare) prepare = nullptr;
  decltype(&PQexecPrepared) execPrepared = nullptr;
  decltype(&PQresultStatus) resultStatus = nullptr;
  decltype(&PQresultErrorField) resultErrorField = nullptr;
  decltype(&PQresultErrorMessage) resultErrorMessage = nullptr;
  decltype(&PQntuples) ntuples = nullptr;
  decltype(&PQgetvalue) getvalue = nullptr;
  decltype(&PQgetlength) getlength = nullptr;
  decltype(&PQclear) clear = nullptr;
};

// Opened from the file `name`, never closed. FailedPrecondition, one sentence: it cannot be opened
// or lacks a function. Thread-safe.
Result<PqLibrary> OpenPq(const char* name);

// OpenPq("libpq.so.5"), once a process.
Result<const PqLibrary*> Pq();

}  // namespace shoal::controller
