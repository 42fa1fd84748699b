#include "rendezvous/bootstrap/coordinator_lookup.h"

#include <cstdlib>

#include "base/fault_injection.h"
#include "net/srv_record.h"

namespace shoal::rendezvous {
namespace {

Result<CoordinatorAddress> ReadFound(const std::string& job_dir) {
  TRY(FaultPoint("launcher.find"));  // injects a missing file
  return ReadCoordinatorFile(job_dir);
}

}  // namespace

Result<CoordinatorAddress> FindCoordinator(const std::string& job_dir) {
  constexpr std::chrono::seconds kPatience{1};
  auto file = ReadFound(job_dir);
  const char* const variable = std::getenv(kCoordinatorServiceVariable);
  if (file.ok() || variable == nullptr) return file;
  const std::string text(variable);
  const size_t at = text.rfind('@');
  if (at == std::string::npos) return file;
  const auto services = net::LookUpSrv(text.substr(0, at), text.substr(at + 1), kPatience);
  if (!services.ok())
    return Unavailable(file.status().message() +
                       "; its SRV record: " + services.status().message());
  for (const net::Service& service : *services) {
    if (!service.address.empty()) return CoordinatorAddress{service.address, service.port};
  }
  return CoordinatorAddress{services->front().target, services->front().port};
}

}  // namespace shoal::rendezvous
