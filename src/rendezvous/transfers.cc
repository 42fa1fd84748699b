#include "rendezvous/transfers.h"

#include <utility>

namespace shoal::rendezvous {

Transfers::Transfers(const std::filesystem::path& job_dir, const std::string& job_id, bool apart,
                     std::function<void(const std::string&)> on_note)
    : apart_(apart),
      on_note_(std::move(on_note)),
      files_(job_dir / "files"),
      intake_(job_dir / "files", [this] { files_.Release(); }),
      relay_(job_dir / "outputs", job_id,
             {[this](const LogKey& key) { outputs_.Kept(key); },
              [this](const LogKey& key, const Status& why) {
                on_note_("outputs of " + key.role + " " + std::to_string(key.index) +
                         " did not come to the controller: " + why.message());
                outputs_.Kept(key);
              }}),
      outputs_(job_dir / "outputs", [this](const LogKey& key) { return relay_.Offer(key); }) {}

void Transfers::ExpectFiles() {
  if (apart_ && !intake_.whole()) files_.Hold();
}

bool Transfers::Knows(std::string_view kind) const {
  if (kind == "files" || kind == "outputs") return true;
  return apart_ && (kind == "fetch_outputs" || kind == "give_files");
}

Status Transfers::Add(Peer* peer, const json::object& hello, const LogKey& key) {
  const std::string kind = GetStringOr(hello, "kind", "");
  if (kind == "outputs") return outputs_.Add(peer, key, hello);
  if (kind == "files") files_.Add(peer);
  if (kind == "fetch_outputs") relay_.Add(peer);
  if (kind == "give_files") intake_.Add(peer);
  return Status::Ok();
}

bool Transfers::Serves(Peer* peer) const {
  return files_.Serves(peer) || outputs_.Serves(peer) || relay_.Serves(peer) ||
         intake_.Serves(peer);
}

void Transfers::Remove(Peer* peer) {
  files_.Remove(peer);
  outputs_.Remove(peer);
  relay_.Remove(peer);
  intake_.Remove(peer);
}

Status Transfers::Received(Peer* peer, const std::string& type, const json::object& message) {
  if (files_.Serves(peer)) return files_.Received(peer, type, message);
  if (outputs_.Serves(peer)) return outputs_.Received(peer, type, message);
  if (relay_.Serves(peer)) return relay_.Received(type, message);
  return intake_.Received(type, message);
}

Status Transfers::Received(Peer* peer, std::string_view bytes) {
  if (outputs_.Serves(peer)) return outputs_.Received(peer, bytes);
  if (intake_.Serves(peer)) return intake_.Received(bytes);
  return InvalidArgument("bytes that nobody asked for");
}

}  // namespace shoal::rendezvous
