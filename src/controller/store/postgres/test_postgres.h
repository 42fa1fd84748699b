// A real PostgreSQL for tests: a server of its own in a temporary directory, without TCP, run as an
// unprivileged user. Its files are copied from a template that the first test makes beside its
// program, since initdb takes a second.
#pragma once

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "controller/store/postgres/postgres_connection.h"

namespace shoal::controller {

class TestPostgres {
 public:
  // The directory of PostgreSQL's programs; empty: the package is not installed.
  static std::filesystem::path Programs() {
    std::filesystem::path newest;
    std::error_code error;
    for (const auto& one : std::filesystem::directory_iterator("/usr/lib/postgresql", error)) {
      const std::filesystem::path bin = one.path() / "bin";
      if (std::filesystem::exists(bin / "initdb", error)) newest = std::max(newest, bin);
    }
    return newest;
  }

  static Result<std::unique_ptr<TestPostgres>> Start() {
    std::unique_ptr<TestPostgres> server(new TestPostgres());
    TRY(server->CopyTemplate());
    TRY(server->Run());
    return server;
  }
  ~TestPostgres() {
    if (pid_ > 0) Kill();
    std::error_code ignored;
    std::filesystem::remove_all(place_, ignored);
  }

  // Of a database, which is made if it does not exist.
  Result<std::string> Database(const std::string& name) {
    TRY_ASSIGN(const std::unique_ptr<PostgresConnection> admin,
               PostgresConnection::Open(Url("postgres")));
    const Status made =
        admin->Execute(("CREATE DATABASE \"" + name + "\" STRATEGY file_copy").c_str());
    // 42P04, duplicate_database, is an internal error to the store.
    if (!made.ok() && made.message().find("already exists") == std::string::npos) return made;
    return Url(name);
  }
  std::string Url(const std::string& database) const {
    return "postgres://shoal:secret-word@/" + database + "?host=" + place_.string();
  }
  // Ends all processes of the server at once, as a crash does (SIGQUIT to the postmaster is
  // PostgreSQL's immediate shutdown: it aborts its sessions without a checkpoint).
  void Kill() {
    ::kill(pid_, SIGQUIT);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
  }
  Status Run() {
    const std::string data = (place_ / "data").string();
    const std::string socket = "unix_socket_directories=" + place_.string();
    TRY_ASSIGN(pid_, Spawn({(Programs() / "postgres").string(), "-D", data, "-c", socket, "-c",
                            "listen_addresses=", "-c", "max_connections=60", "-c", "fsync=off",
                            "-c", "shared_buffers=16MB"}));
    const TimePoint end = RealClock::Get()->Now() + std::chrono::seconds(60);
    while (true) {
      const Status open = PostgresConnection::Open(Url("postgres")).status();
      if (open.ok() || RealClock::Get()->Now() > end) return open;
      if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
        pid_ = 0;
        return Internal("postgres ended; see " + (place_ / "log").string());
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // polls
    }
  }

 private:
  TestPostgres() {
    const char* const memory = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    std::string name = std::string(memory) + "/shoal-pg-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) place_ = name;
    GiveAway(place_);
  }

  // PostgreSQL refuses to run as root.
  static const passwd* User() {
    static const passwd* const user = ::getpwnam("nobody");
    return ::geteuid() == 0 ? user : nullptr;
  }
  static void GiveAway(const std::filesystem::path& path) {
    if (const passwd* const user = User())
      (void)!::lchown(path.c_str(), user->pw_uid, user->pw_gid);
  }

  Result<pid_t> Spawn(const std::vector<std::string>& argv) {
    std::vector<char*> pointers;
    for (const std::string& one : argv) pointers.push_back(const_cast<char*>(one.c_str()));
    pointers.push_back(nullptr);
    const passwd* const user = User();
    TRY_ASSIGN(const UniqueFd log, OpenFile(place_ / "log", O_WRONLY | O_CREAT | O_APPEND, 0644));
    const pid_t pid = ::fork();
    if (pid < 0) return ErrnoStatus(errno, "fork");
    if (pid > 0) return pid;
    ::dup2(log.get(), 1);
    ::dup2(log.get(), 2);
    if (::chdir("/") != 0) ::_exit(125);
    if (user != nullptr && (::setgroups(0, nullptr) != 0 || ::setgid(user->pw_gid) != 0 ||
                            ::setuid(user->pw_uid) != 0))
      ::_exit(126);
    ::prctl(PR_SET_PDEATHSIG, SIGQUIT);
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
  }

  // Makes the template once for all test processes of this build.
  Status CopyTemplate() {
    const std::filesystem::path beside =
        std::filesystem::read_symlink("/proc/self/exe").parent_path();
    const std::filesystem::path ready = beside / "postgres-template";
    TRY_ASSIGN(const UniqueFd lock,
               OpenFile(beside / "postgres-template.lock", O_RDWR | O_CREAT, 0600));
    if (::flock(lock.get(), LOCK_EX) != 0) return ErrnoStatus(errno, "flock");
    const auto all = std::filesystem::copy_options::recursive;
    std::error_code error;
    if (!std::filesystem::exists(ready)) {
      TRY_ASSIGN(const pid_t pid, Spawn({(Programs() / "initdb").string(), "-D",
                                         (place_ / "data").string(), "--no-sync", "--auth=trust",
                                         "--username=shoal", "--encoding=UTF8", "--locale=C"}));
      int status = 0;
      if (::waitpid(pid, &status, 0) != pid || status != 0)
        return Internal("initdb failed; see " + (place_ / "log").string());
      const std::filesystem::path aside = beside / "postgres-template.new";
      std::filesystem::remove_all(aside, error);
      std::filesystem::copy(place_ / "data", aside, all, error);
      if (error) return ErrnoStatus(error.value(), aside.string());
      std::filesystem::rename(aside, ready, error);
      return error ? ErrnoStatus(error.value(), ready.string()) : Status::Ok();
    }
    std::filesystem::copy(ready, place_ / "data", all, error);
    if (error) return ErrnoStatus(error.value(), place_.string());
    GiveAway(place_ / "data");
    std::filesystem::permissions(place_ / "data", std::filesystem::perms(0700));
    for (const auto& one : std::filesystem::recursive_directory_iterator(place_ / "data"))
      GiveAway(one.path());
    return Status::Ok();
  }

  std::filesystem::path place_;
  pid_t pid_ = 0;
};

}  // namespace shoal::controller
