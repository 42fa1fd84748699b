#include "rendezvous/bootstrap/bootstrap_files.h"

#include "base/file.h"
#include "job/execution/job_dir.h"
#include "net/address.h"
#include "rendezvous/protocol/coordinator_connection.h"

namespace shoal::rendezvous {
namespace {

struct BootstrapFile {
  const char* name;
  bool always;
};
constexpr BootstrapFile kFiles[] = {{job::JobDir::kJob, true},
                                    {job::JobDir::kToken, true},
                                    {job::JobDir::kId, true},
                                    {job::JobDir::kResumes, false},
                                    {job::JobDir::kSecrets, false}};
constexpr size_t kMaxFile = 16 << 20;

// A missing optional file reads as empty.
Result<std::string> ReadBootstrapFile(const std::string& directory, const BootstrapFile& file) {
  auto text = ReadFile(directory + "/" + file.name, kMaxFile);
  const bool missing = !text.ok() && text.status().code() == Code::kNotFound;
  return missing && !file.always ? std::string() : text;
}

}  // namespace

Result<std::map<std::string, std::string>> ReadBootstrapFiles(const std::string& job_dir) {
  std::map<std::string, std::string> seed;
  for (const BootstrapFile& file : kFiles) {
    TRY_ASSIGN(std::string text, ReadBootstrapFile(job_dir, file));
    if (!text.empty()) seed[file.name] = std::move(text);
  }
  return seed;
}

Status InstallBootstrapFiles(const std::string& bootstrap_dir, const std::string& job_dir) {
  TRY(MakeDirectories(job_dir, 0700));
  for (const BootstrapFile& file : kFiles) {
    TRY_ASSIGN(const std::string text, ReadBootstrapFile(bootstrap_dir, file));
    if (!text.empty()) TRY(WriteFileAtomically(job_dir + "/" + file.name, text, 0600, false));
  }
  return Status::Ok();
}

Status InstallCoordinatorAddress(const std::string& address, const std::string& job_dir) {
  TRY_ASSIGN(const net::HostPort at, net::ParseHostPort(address));
  if (at.port == 0) return InvalidArgument("address '" + address + "': the port is 0");
  return WriteCoordinatorFile(job_dir, {at.host, at.port}, RealClock::Get()->Wall());
}

}  // namespace shoal::rendezvous
