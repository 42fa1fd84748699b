#include "base/access/directory_owner.h"

#include <grp.h>
#include <pwd.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "base/access/remove_tree.h"

namespace shoal {
namespace {

constexpr size_t kEntryBytes = 16384;
constexpr long kMostId = 0x7ffffffe;  // the kernel and tools give meanings to some above

// The user whose rights this thread has in a scope of FileAccessAs.
thread_local std::optional<UserIds> current_user;

std::optional<long> ParseId(std::string_view text) {
  long id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return id;
}

Result<UserIds> CheckIds(std::string_view text, long uid, long gid) {
  const auto usable = [](long id) { return id > 0 && id <= kMostId; };
  if (usable(uid) && usable(gid)) return UserIds{static_cast<uid_t>(uid), static_cast<gid_t>(gid)};
  return InvalidArgument("user: got " + std::string(text) +
                         ", expected a user and a group other than root's");
}

// The entry of a name, or of the id `uid` if the name is empty.
std::optional<UserIds> FindEntry(const std::string& name, uid_t uid) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, kEntryBytes> buffer{};
  const int error = name.empty()
                        ? ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found)
                        : ::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (error != 0 || found == nullptr) return std::nullopt;
  return UserIds{entry.pw_uid, entry.pw_gid};
}

[[noreturn]] void Give(const char* what) {
  (void)std::fprintf(stderr, "cannot %s another user's rights of access: the process ends\n", what);
  std::abort();
}

// The wrappers of glibc change all threads of the process; these calls change the calling one.
bool SetGroups(const gid_t* groups, size_t count) {
  return ::syscall(SYS_setgroups, count, groups) == 0;
}

// setfsuid and setfsgid report no errors: asking with an invalid id returns the present one.
bool SetIds(const UserIds& user) {
  ::setfsgid(user.gid);
  ::setfsuid(user.uid);
  const auto gid = static_cast<gid_t>(::setfsgid(static_cast<gid_t>(-1)));
  const auto uid = static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1)));
  return gid == user.gid && uid == user.uid;
}

}  // namespace

std::string ToText(const UserIds& user) {
  return std::to_string(user.uid) + ":" + std::to_string(user.gid);
}

Result<UserIds> ParseUserIds(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view first = text.substr(0, colon);
  const std::optional<long> uid = ParseId(first);
  if (colon != std::string_view::npos) {
    const std::optional<long> gid = ParseId(text.substr(colon + 1));
    if (uid && gid) return CheckIds(text, *uid, *gid);
    return InvalidArgument("user: got " + std::string(text) +
                           ", expected UID:GID as two numbers, or the name of a user");
  }
  if (uid && *uid <= 0) return CheckIds(text, *uid, *uid);
  if (first.empty() || first.find('\0') != std::string_view::npos)
    return InvalidArgument("user: expected UID:GID, or the name of a user of the server's machine");
  const std::optional<UserIds> entry =
      uid ? FindEntry("", static_cast<uid_t>(*uid)) : FindEntry(std::string(first), 0);
  if (entry) return CheckIds(text, entry->uid, entry->gid);
  if (uid) return CheckIds(text, *uid, *uid);
  return InvalidArgument("user: the machine of the server has no user " + std::string(first) +
                         "; create it there, or give UID:GID");
}

std::optional<UserIds> ForeignOwner(const std::filesystem::path& directory) {
  struct stat info {};
  if (::geteuid() != 0 || ::lstat(directory.c_str(), &info) != 0) return std::nullopt;
  if (!S_ISDIR(info.st_mode) || info.st_uid == 0) return std::nullopt;
  return UserIds{info.st_uid, info.st_gid};
}

FileAccessAs::FileAccessAs(const std::filesystem::path& directory)
    : FileAccessAs(ForeignOwner(directory)) {}

FileAccessAs::FileAccessAs(const std::optional<UserIds>& user) {
  if (!user || user == current_user) return;
  if (current_user) Give("nest");
  Enter(*user);
}

bool FileAccessAs::active() { return current_user.has_value(); }

void FileAccessAs::Enter(const UserIds& user) {
  const int count = ::getgroups(0, nullptr);
  if (count < 0) Give("take");
  groups_.resize(static_cast<size_t>(count));
  if (count > 0 && ::getgroups(count, groups_.data()) != count) Give("take");
  if (!SetGroups(&user.gid, 1) || !SetIds(user)) Give("take");
  entered_ = true;
  current_user = user;
}

FileAccessAs::~FileAccessAs() {
  if (!entered_) return;
  if (!SetIds({::geteuid(), ::getegid()}) || !SetGroups(groups_.data(), groups_.size()))
    Give("return");
  current_user.reset();
}

Status RemoveOwnedDirectory(const std::filesystem::path& directory) {
  {
    const FileAccessAs owner(directory);
    (void)RemoveTree(directory);  // all but what needs root, at least the entry in its parent
  }
  return RemoveTree(directory);
}

}  // namespace shoal
