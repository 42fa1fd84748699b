// For tests: a unix socket on which somebody answers HTTP as the test says, one connection at a
// time.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"

namespace shoal::engine::docker {

struct Asked {
  std::string method;
  std::string target;
  std::string body;
  std::string head;  // all before the body
};

class FakeDaemon {
 public:
  // Gives the whole reply, head and all; the connection is then closed.
  using Answer = std::function<std::string(const Asked&)>;

  explicit FakeDaemon(Answer answer);
  ~FakeDaemon();

  std::string path() const { return (dir_.path() / "socket").string(); }
  std::vector<Asked> asked();
  // A reply with this status and body.
  static std::string Reply(int status, const std::string& body);

 private:
  void Serve();

  const Answer answer_;
  TempDir dir_;
  UniqueFd listener_;
  std::mutex mu_;
  std::vector<Asked> asked_;  // guarded by mu_
  std::thread thread_;
};

}  // namespace shoal::engine::docker
