// The sending side of an attempt's outputs: lists the directory and sends its entries, from where
// the receiver stands. Used by output_uploader.cc (a launcher, to the coordinator) and
// output_relay.cc (the coordinator, to a controller). docs/formats/rendezvous.md, "Outputs".
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "base/status.h"
#include "rendezvous/transfer/output_tree.h"

namespace shoal::rendezvous {

struct OutputConnection {
  std::function<void(std::string_view type, json::object fields)> send;
  std::function<void(std::string frame)> send_binary;
  std::function<size_t()> queued_bytes;
};

// Belongs to the loop's thread. Reads at the connection's pace.
class OutputSource {
 public:
  OutputSource(std::filesystem::path directory, OutputConnection connection)
      : directory_(std::move(directory)), connection_(std::move(connection)) {}

  // Lists the directory. ResourceExhausted beyond the bounds.
  Status Open();
  // A message of the receiver. An error: the outputs are lost, for this reason.
  Status HandleMessage(const std::string& type, const json::object& message);
  // The connection has room.
  Status Pump();
  // The connection was lost; the other side says where it stands when there is another.
  void OnDisconnect();

  // The receiver has stored everything; then whether anything was sent from here, and what could
  // not be sent: OK, or InvalidArgument that names it.
  bool stored() const { return stored_; }
  bool sent() const { return sent_; }
  Status LeftOut() const;

 private:
  Status Offer(const json::object& message);
  Status SendNext();
  Status SendPiece();
  static size_t EntryIndex(int64_t number) { return static_cast<size_t>(number); }

  const std::filesystem::path directory_;
  const OutputConnection connection_;
  OutputTree tree_;
  size_t next_ = 0;   // entry
  int64_t skip_ = 0;  // bytes of it that the other side has
  UniqueFd file_;     // of the entry before, while its content is sent
  int64_t at_ = 0;
  int64_t left_ = 0;
  bool sending_ = false;  // on this connection
  bool sent_ = false;     // anything was sent
  bool stored_ = false;
};

}  // namespace shoal::rendezvous
