// What a role's programs wait for, and how it is seen that they serve: parts of job.h's Role.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace shoal::job {

// What a role waits for before its programs start.
enum class AfterWhen : uint8_t { kStarted, kReady, kEnded };

struct After {
  std::vector<std::string> roles;  // empty: nobody
  AfterWhen when = AfterWhen::kReady;

  bool operator==(const After&) const = default;
};

// How it is seen that a task's program is ready to serve others; and, in part, that it is well.
enum class ReadyBy : uint8_t { kStart, kTcp, kHttp, kCommand, kLog };

struct Ready {
  ReadyBy by = ReadyBy::kStart;      // kStart: as soon as it runs
  std::string port;                  // kTcp, kHttp: one of the role's
  std::string path = "/";            // kHttp
  std::vector<std::string> command;  // kCommand: exits with 0
  std::string line;                  // kLog: a line of its output matches (policy.h, LineMatches)
  std::chrono::milliseconds every{250};
  std::chrono::milliseconds timeout{300'000};  // then it is killed; 0: never

  bool operator==(const Ready&) const = default;
};

// How Marathon sees that a running program is well. kStart: it is not asked; never kLog.
struct Health {
  ReadyBy by = ReadyBy::kStart;
  std::string port;                          // kTcp, kHttp: one of the role's
  std::string path = "/";                    // kHttp
  std::vector<std::string> command;          // kCommand: exits with 0
  std::chrono::milliseconds grace{300'000};  // after each start of the program
  std::chrono::milliseconds every{60'000};
  std::chrono::milliseconds timeout{20'000};
  int failures = 3;  // in a row

  bool operator==(const Health&) const = default;
};

}  // namespace shoal::job
