// The coordinator's bulk transfers: the job's files to hosts, outputs from hosts and, in
// no-shared-filesystem mode, files from the controller and outputs on to it. Used by
// coordinator.cc.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "rendezvous/protocol/connection.h"
#include "rendezvous/transfer/file_receiver.h"
#include "rendezvous/transfer/file_server.h"
#include "rendezvous/transfer/output_relay.h"
#include "rendezvous/transfer/output_store.h"

namespace shoal::rendezvous {

// Belongs to the loop's thread.
class Transfers {
 public:
  // `no_shared_filesystem`: the controller does not see `job_dir`. `on_note`: takes sentences for
  // people.
  Transfers(const std::filesystem::path& job_dir, const std::string& job_id,
            bool no_shared_filesystem, std::function<void(const std::string&)> on_note);

  // The job has files: hosts get none before all of them are here.
  void ExpectFiles();
  // Whether a hello kind is one of these transfers.
  bool IsTransfer(std::string_view kind) const;
  // `key`: for kind "outputs", the attempt, which the caller has checked. The caller keeps
  // ownership of `connection`, until Remove. On an error the caller closes the connection.
  Status Add(Connection* connection, const json::object& hello, const LogKey& key);
  bool Serves(Connection* connection) const;
  void Remove(Connection* connection);
  Status Received(Connection* connection, const std::string& type, const json::object& message);
  Status Received(Connection* connection, std::string_view bytes);

 private:
  const bool no_shared_filesystem_;
  const std::function<void(const std::string&)> on_note_;
  FileServer files_;
  FileReceiver file_receiver_;
  OutputRelay relay_;
  OutputStore outputs_;
};

}  // namespace shoal::rendezvous
