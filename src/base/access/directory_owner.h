// The user to whom a directory belongs, and access to it with that user's rights.
//
// The directory of a job whose tasks run as another user belongs to that user, who may replace
// every file in it by a link at any time. A server that runs as root therefore opens, writes and
// removes files there as that user: a link then leads nowhere that the user could not reach without
// the server (docs/adr/0295-tasks-run-as-the-owner-of-the-job-directory.md).
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shoal {

// A user of this machine. Plain value.
struct UserIds {
  uid_t uid = 0;
  gid_t gid = 0;
  bool operator==(const UserIds&) const = default;
};

// "2001:2001".
std::string ToText(const UserIds& user);
// "2001:2001" or "2001" (the group is that of the user's entry, else 2001), or a name with an
// entry. InvalidArgument for unknown names, and for root, its group and ids that cannot be used.
Result<UserIds> ParseUserIds(std::string_view text);

// The owner of a directory whose files this process must not touch with its own rights: another
// user's, if this process is root. None if this process is not root, or there is no such directory.
std::optional<UserIds> ForeignOwner(const std::filesystem::path& directory);

// Lets the calling thread access files as another user until the end of the scope; other threads
// are not affected, and none may be started in it. OpenFile (base/file.h) then opens only regular
// files and directories that are no links, and does not wait for the other end of a FIFO. The
// process ends if the kernel refuses, since it would go on as root. Inside a scope of the same user
// another has no effect. Costs six system calls.
class FileAccessAs {
 public:
  // With the rights of the ForeignOwner of `directory`; without one nothing changes.
  explicit FileAccessAs(const std::filesystem::path& directory);
  // With the rights of `user`; none: nothing changes. Root is required.
  explicit FileAccessAs(const std::optional<UserIds>& user);
  ~FileAccessAs();
  FileAccessAs(const FileAccessAs&) = delete;
  FileAccessAs& operator=(const FileAccessAs&) = delete;

  // Whether the calling thread is in such a scope.
  static bool active();

 private:
  void Enter(const UserIds& user);
  bool entered_ = false;
  std::vector<gid_t> groups_;  // of the thread before
};

// Removes a directory and everything in it, where its owner may be ForeignOwner: the contents with
// the owner's rights, then the rest, never through a link. Its parent must be this process's.
Status RemoveOwnedDirectory(const std::filesystem::path& directory);

}  // namespace shoal
