// Takes the connections that come to a node of a ps-lite job, and gives on those whose other side
// proves the job's token. One thread and bounded memory, whatever number of
// unauthenticated connections arrives and whatever they send.
//
// Made by postoffice_node.cc, one a listener.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "bindings/ps_lite/connection.h"

namespace shoal::bindings {

class Acceptor {
 public:
  static constexpr size_t kMaxUnproven = 64;  // the oldest makes room for the next

  // `accepted` is called in the acceptor's thread and must not block.
  using Accepted = std::function<void(std::unique_ptr<Connection>)>;
  static Result<std::unique_ptr<Acceptor>> Start(UniqueFd listener, std::string token,
                                                 Accepted accepted);
  // Closes the listener and all connections that have not been given on.
  ~Acceptor();

 private:
  struct Unproven {
    UniqueFd fd;
    std::string name;
    ListenerProof proof;
    std::string received;
    TimePoint until;
  };
  using Connections = std::list<Unproven>;

  Acceptor(UniqueFd listener, std::string token, Accepted accepted);
  void Run();
  void AcceptOne();
  // False: it is done with.
  bool Receive(Unproven* from);
  void Refuse(const Unproven& refused, const Status& why);
  int WaitMilliseconds() const;

  UniqueFd listener_;
  UniqueFd stop_;
  const std::string token_;
  const Accepted accepted_;
  Connections unproven_;             // in the order in which they came
  bool out_of_descriptors_ = false;  // the listener is not looked at for a moment
  uint64_t refused_ = 0;
  std::thread thread_;
};

}  // namespace shoal::bindings
