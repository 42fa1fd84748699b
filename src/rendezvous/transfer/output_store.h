// The coordinator's side of bringing outputs back: takes what attempts on other hosts wrote to
// $SHOAL_OUTPUT, over connections of their own that proved the job's token (hello kind "outputs"),
// and keeps it where `shoal outputs` looks.
//
//   OUTPUTS/<role>-<index>.<attempt>/           whole, appears at once
//   OUTPUTS/.incoming/<role>-<index>.<attempt>/      what has come of it
//   OUTPUTS/.incoming/<role>-<index>.<attempt>.list  … in this order; first line: which sender
//   OUTPUTS/.probe-<random>                     whoever sees it sees this directory
//
// Used by coordinator.cc. docs/formats/rendezvous.md, "Outputs". Nothing is synced: like what tasks
// write there themselves, it survives the coordinator's death, not the machine's.
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
  // `hold`: asked when an attempt's outputs are whole; true: its sender is told by OnForwarded
  // only.
  explicit OutputStore(std::filesystem::path directory,
                       std::function<bool(const LogKey&)> hold = nullptr)
      : directory_(std::move(directory)), hold_(std::move(hold)) {}
  ~OutputStore();

  // Of this attempt, which was checked; takes the place of an earlier connection. `connection`
  // stays the caller's, until Remove. InvalidArgument closes the connection.
  Status Add(Connection* connection, const LogKey& key, const json::object& hello);
  bool Serves(Connection* connection) const { return uploads_.contains(connection); }
  void Remove(Connection* connection);
  // An error: the connection is then to be closed. What is wrong with the outputs alone, a full
  // disk for instance, is told to the sender, and what had come of them is removed.
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
