#include "learn/coordination/reporter.h"

#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/portable_json.h"

namespace shoal::learn {
namespace {

constexpr size_t kMaxReportBytes = 4096;  // what a pipe takes in one piece

}  // namespace

void Reporter::Write(const char* kind, const json::object& value) const {
  if (fd_ < 0) return;
  std::string line = ToText(PortableJson(json::object{{kind, value}}));
  line += '\n';
  if (line.size() > kMaxReportBytes) return;
  while (write(fd_, line.data(), line.size()) < 0 && errno == EINTR) {
  }
}

}  // namespace shoal::learn
