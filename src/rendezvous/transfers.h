// The coordinator's connections over which files and outputs go: the job's files to hosts and,
// apart, from the controller; outputs from hosts and, apart, on to the controller. Used by
// coordinator.cc.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "rendezvous/file_intake.h"
#include "rendezvous/file_server.h"
#include "rendezvous/output_relay.h"
#include "rendezvous/output_store.h"
#include "rendezvous/peer.h"

namespace shoal::rendezvous {

// Belongs to the loop's thread.
class Transfers {
 public:
  // `apart`: the controller does not see `job_dir`. `on_note`: a sentence for people.
  Transfers(const std::filesystem::path& job_dir, const std::string& job_id, bool apart,
            std::function<void(const std::string&)> on_note);

  // The job has files: nobody gets any before they are here.
  void ExpectFiles();
  // Whether a connection of this kind (of its hello) is one of these.
  bool Knows(std::string_view kind) const;
  // `key`: of kind "outputs", the attempt, which was checked. `peer` stays the caller's, until
  // Remove. An error: the connection is to be closed.
  Status Add(Peer* peer, const json::object& hello, const LogKey& key);
  bool Serves(Peer* peer) const;
  void Remove(Peer* peer);
  Status Received(Peer* peer, const std::string& type, const json::object& message);
  Status Received(Peer* peer, std::string_view bytes);

 private:
  const bool apart_;
  const std::function<void(const std::string&)> on_note_;
  FileServer files_;
  FileIntake intake_;
  OutputRelay relay_;
  OutputStore outputs_;
};

}  // namespace shoal::rendezvous
