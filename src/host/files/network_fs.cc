#include "host/files/network_fs.h"

#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace shoal::host {
namespace {

// statfs(2), linux/magic.h and the file systems' own headers.
constexpr std::array<uint32_t, 19> kTypes = {
    0x6969,      // NFS
    0x517b,      // SMB
    0xff534d42,  // CIFS
    0xfe534d42,  // SMB 2
    0x65735546,  // FUSE
    0x00c36400,  // CephFS
    0x01021997,  // 9p
    0x0bd00bd0,  // Lustre
    0x47504653,  // GPFS
    0x19830326,  // BeeGFS
    0x5346414f,  // AFS
    0x6b414653,  // kAFS
    0x73757245,  // Coda
    0x01161970,  // GFS2
    0x7461636f,  // OCFS2
    0x20030528,  // OrangeFS
    0xaad7aaea,  // PanFS
    0x564c,      // NCP
    0x786f4256,  // VirtualBox's shared folders
};

}  // namespace

bool IsOnNetwork(const std::filesystem::path& path) {
  struct statfs info {};
  if (::statfs(path.c_str(), &info) != 0) return false;
  return std::find(kTypes.begin(), kTypes.end(), static_cast<uint32_t>(info.f_type)) !=
         kTypes.end();
}

}  // namespace shoal::host
