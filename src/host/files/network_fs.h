// Detection of network file systems.
#pragma once

#include <filesystem>

namespace shoal::host {

// Whether the file's bytes come over a network (NFS, CIFS, Lustre, CephFS, GPFS, 9p …, and anything
// over FUSE, such as MooseFS, GlusterFS and object stores), by statfs(2)'s type. False if statfs
// fails.
bool IsOnNetwork(const std::filesystem::path& path);

}  // namespace shoal::host
