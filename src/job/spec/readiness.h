// Start conditions, readiness and health checks of a role; parts of Role in job.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace shoal::job {

// Condition on other roles that holds back the start of a role's programs.
enum class AfterWhen : uint8_t { kStarted, kReady, kEnded };

struct After {
  std::vector<std::string> roles;  // empty: no condition
  AfterWhen when = AfterWhen::kReady;

  bool operator==(const After&) const = default;
};

// Kind of check that shows a program ready to serve, and partly also healthy.
enum class ReadyBy : uint8_t { kStart, kTcp, kHttp, kCommand, kLog };

struct Ready {
  ReadyBy by = ReadyBy::kStart;      // kStart: ready as soon as it runs
  std::string port;                  // kTcp, kHttp: one of the role's
  std::string path = "/";            // kHttp
  std::vector<std::string> command;  // kCommand: exits with 0
  std::string line;  // kLog: pattern of a line of its output (LineMatches in policy.h)
  std::chrono::milliseconds every{250};
  std::chrono::milliseconds timeout{300'000};  // the program is killed after this time; 0: never

  bool operator==(const Ready&) const = default;
};

// Marathon's health check of a running program. kStart: no check; kLog is not supported.
struct Health {
  ReadyBy by = ReadyBy::kStart;
  std::string port;                          // kTcp, kHttp: one of the role's
  std::string path = "/";                    // kHttp
  std::vector<std::string> command;          // kCommand: exits with 0
  std::chrono::milliseconds grace{300'000};  // ignored failures after each start of the program
  std::chrono::milliseconds every{60'000};
  std::chrono::milliseconds timeout{20'000};
  int failures = 3;  // consecutive failures before the program is killed

  bool operator==(const Health&) const = default;
};

}  // namespace shoal::job
