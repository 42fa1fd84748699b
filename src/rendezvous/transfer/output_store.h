// The coordinator's side of collecting outputs: receives what attempts on other hosts wrote to
// $SHOAL_OUTPUT, over connections with hello kind "outputs", and stores it where `shoal outputs`
// reads.
//
//   OUTPUTS/<role>-<index>.<attempt>/           complete; appears atomically
//   OUTPUTS/.incoming/<role>-<index>.<attempt>/      received so far
//   OUTPUTS/.incoming/<role>-<index>.<attempt>.list  in this order; first line: the sender
//   OUTPUTS/.probe-<random>                     a process that sees it sees this directory
//
// Used by transfers.cc. docs/formats/rendezvous.md, "Outputs". Nothing is synced: like files that
// tasks write themselves, outputs survive the coordinator's death but not the machine's.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/status.h"
#include "rendezvous/logs/log_segment.h"
#include "rendezvous/protocol/connection.h"
#include "rendezvous/transfer/output_tree.h"

namespace shoal::rendezvous {

// Belongs to the loop's thread. Holds a list of links and one open file a connection.
class OutputStore {
 public:
  // `hold`: called when an attempt's outputs are complete. If true, the sender is told only by
  // OnForwarded.
  explicit OutputStore(std::filesystem::path directory,
                       std::function<bool(const LogKey&)> hold = nullptr)
      : directory_(std::move(directory)), hold_(std::move(hold)) {}
  ~OutputStore();

  // Outputs of this attempt, which the caller has checked; replaces an earlier connection. The
  // caller keeps ownership of `connection`, until Remove. On InvalidArgument the caller closes the
  // connection.
  Status Add(Connection* connection, const LogKey& key, const json::object& hello);
  bool Serves(Connection* connection) const { return uploads_.contains(connection); }
  void Remove(Connection* connection);
  // On an error the caller closes the connection. Failures of the outputs alone, for instance a
  // full disk, are reported to the sender, and what was received of them is removed.
  Status Received(Connection* connection, const std::string& type, const json::object& message);
  Status Received(Connection* connection, std::string_view bytes);
  void OnForwarded(const LogKey& key);

 private:
  struct Upload {
    LogKey key;
    std::filesystem::path probe;
    int64_t entries = 0;  // of the list, the one that is coming included
    int64_t bytes = 0;    // of all of them
    std::vector<OutputEntry> links;
    OutputEntry last;    // the one that is coming, if `left`
    bool again = false;  // `last` is to come again, for the rest of it
    UniqueFd list;
    UniqueFd file;      // of `last`
    int64_t left = 0;   // bytes of `last`
    bool done = false;  // or has failed
    bool held = false;  // whole, and not told so yet
  };
  std::string NameOf(const LogKey& key) const;
  std::filesystem::path Incoming(const Upload& upload) const;
  std::filesystem::path ListOf(const Upload& upload) const;
  Status Resume(Upload* upload, const std::string& id);
  Status TakeEntry(Upload* upload, const json::object& message);
  Status BeginEntry(Upload* upload, const OutputEntry& entry);
  Status Finish(Upload* upload, const json::object& message);
  void Discard(Upload* upload);
  void Fail(Connection* connection, Upload* upload, const Status& why);

  const std::filesystem::path directory_;
  const std::function<bool(const LogKey&)> hold_;
  std::map<Connection*, Upload> uploads_;
  std::set<LogKey> held_;
};

}  // namespace shoal::rendezvous
