#include "rendezvous/client/file_uploader.h"

#include <utility>

#include "base/log.h"
#include "rendezvous/client/dialed_connection.h"
#include "rendezvous/transfer/file_server.h"

namespace shoal::rendezvous {
namespace {

// Serves the job's files with a FileServer over a connection that it has dialled itself.
class SocketFileUploader final : public FileUploader {
 public:
  SocketFileUploader(net::Loop* loop, const TransferOptions& line) : server_(line.directory) {
    CoordinatorConnectionCallbacks calls = TransferOptions::Callbacks("give_files");
    calls.on_up = [this] { server_.Add(&dialed_); };
    calls.on_message = [this](const std::string& type, const json::object& message) {
      const Status status = server_.Received(&dialed_, type, message);
      if (!status.ok()) LogWarning("files: message '{}': {}", type, status.message());
    };
    calls.on_binary = [](std::string_view) {};
    calls.on_drain = [this] { dialed_.Drained(); };
    calls.on_down = [this](const Status&) { server_.Remove(&dialed_); };
    calls.on_given_up = [](const Status& why) {
      if (!why.ok()) LogInfo("the coordinator is not given files any more: {}", why.message());
    };
    connection_ = CoordinatorConnection::Start(loop, line.Options(), std::move(calls));
  }

 private:
  std::unique_ptr<CoordinatorConnection> connection_;
  DialedConnection dialed_{&connection_};
  FileServer server_;
};

}  // namespace

std::unique_ptr<FileUploader> FileUploader::Start(net::Loop* loop, const TransferOptions& line) {
  return std::make_unique<SocketFileUploader>(loop, line);
}

}  // namespace shoal::rendezvous
