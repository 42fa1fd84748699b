// Lines of an SQL session's process from any bytes: requests and the answers to its questions.
#include <cstdlib>
#include <string>
#include <string_view>

#include "sql/process/messages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace shoal;
  const std::string_view line(reinterpret_cast<const char*>(bytes), size);
  const auto request = sql::ParseSessionRequest(line);
  if (!request.ok()) return 0;
  if (request->cursor > request->text.size() || request->rows > sql::kMaxShownRows) std::abort();
  const auto begin = sql::ParseSessionBegin(request->body);
  if (begin.ok() && begin->caps.time < Duration(0)) std::abort();
  const auto finished = sql::ParseFinishedJob(request->body);
  if (!sql::ErrorOf(request->body).ok() && finished.ok()) std::abort();
  static_cast<void>(sql::ParseListedJobs(request->body));
  return 0;
}
