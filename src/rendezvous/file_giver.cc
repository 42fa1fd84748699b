#include "rendezvous/file_giver.h"

#include <utility>

#include "base/log.h"
#include "rendezvous/file_server.h"
#include "rendezvous/link_peer.h"

namespace shoal::rendezvous {
namespace {

class Giver final : public FileGiver {
 public:
  Giver(net::Loop* loop, const OwnLine& line) : server_(line.directory) {
    LinkCallbacks calls = OwnLine::Callbacks("give_files");
    calls.on_up = [this] { server_.Add(&peer_); };
    calls.on_message = [this](const std::string& type, const json::object& message) {
      const Status status = server_.Received(&peer_, type, message);
      if (!status.ok()) LogWarning("files: message '{}': {}", type, status.message());
    };
    calls.on_binary = [](std::string_view) {};
    calls.on_drain = [this] { peer_.Drained(); };
    calls.on_down = [this](const Status&) { server_.Remove(&peer_); };
    calls.on_given_up = [](const Status& why) {
      if (!why.ok()) LogInfo("the coordinator is not given files any more: {}", why.message());
    };
    link_ = Link::Start(loop, line.Options(), std::move(calls));
  }

 private:
  std::unique_ptr<Link> link_;
  LinkPeer peer_{&link_};
  FileServer server_;
};

}  // namespace

std::unique_ptr<FileGiver> FileGiver::Start(net::Loop* loop, const OwnLine& line) {
  return std::make_unique<Giver>(loop, line);
}

}  // namespace shoal::rendezvous
