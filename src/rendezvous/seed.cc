#include "rendezvous/seed.h"

#include "base/file.h"
#include "net/address.h"
#include "rendezvous/link.h"

namespace shoal::rendezvous {
namespace {

struct SeedFile {
  const char* name;
  bool always;
};
constexpr SeedFile kFiles[] = {
    {"job.json", true}, {"token", true}, {"id", true}, {"resumes", false}};
constexpr size_t kMaxFile = 16 << 20;

// Not there and need not be: an empty one.
Result<std::string> ReadSeedFile(const std::string& directory, const SeedFile& file) {
  auto text = ReadFile(directory + "/" + file.name, kMaxFile);
  const bool missing = !text.ok() && text.status().code() == Code::kNotFound;
  return missing && !file.always ? std::string() : text;
}

}  // namespace

Result<std::map<std::string, std::string>> MakeSeed(const std::string& job_dir) {
  std::map<std::string, std::string> seed;
  for (const SeedFile& file : kFiles) {
    TRY_ASSIGN(std::string text, ReadSeedFile(job_dir, file));
    if (!text.empty()) seed[file.name] = std::move(text);
  }
  return seed;
}

Status PlantSeed(const std::string& seed_dir, const std::string& job_dir) {
  TRY(MakeDirectories(job_dir, 0700));
  for (const SeedFile& file : kFiles) {
    TRY_ASSIGN(const std::string text, ReadSeedFile(seed_dir, file));
    if (!text.empty()) TRY(WriteFileAtomically(job_dir + "/" + file.name, text, 0600, false));
  }
  return Status::Ok();
}

Status PlantCoordinator(const std::string& address, const std::string& job_dir) {
  TRY_ASSIGN(const net::HostPort at, net::ParseHostPort(address));
  if (at.port == 0) return InvalidArgument("address '" + address + "': the port is 0");
  return WriteCoordinatorFile(job_dir, {at.host, at.port}, RealClock::Get()->Wall());
}

}  // namespace shoal::rendezvous
