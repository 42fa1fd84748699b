#include "rendezvous/transfer/transfers.h"

#include <utility>

#include "job/execution/job_dir.h"

namespace shoal::rendezvous {

Transfers::Transfers(const std::filesystem::path& job_dir, const std::string& job_id,
                     bool no_shared_filesystem, std::function<void(const std::string&)> on_note)
    : no_shared_filesystem_(no_shared_filesystem),
      on_note_(std::move(on_note)),
      files_(job::JobDir(job_dir).files()),
      file_receiver_(job::JobDir(job_dir).files(), [this] { files_.Release(); }),
      relay_(job::JobDir(job_dir).outputs(), job_id,
             {[this](const LogKey& key) { outputs_.OnForwarded(key); },
              [this](const LogKey& key, const Status& why) {
                on_note_("outputs of " + key.role + " " + std::to_string(key.index) +
                         " did not come to the controller: " + why.message());
                outputs_.OnForwarded(key);
              }}),
      outputs_(job::JobDir(job_dir).outputs(),
               [this](const LogKey& key) { return relay_.Offer(key); }) {}

void Transfers::ExpectFiles() {
  if (no_shared_filesystem_ && !file_receiver_.whole()) files_.Hold();
}

bool Transfers::IsTransfer(std::string_view kind) const {
  if (kind == "files" || kind == "outputs") return true;
  return no_shared_filesystem_ && (kind == "fetch_outputs" || kind == "give_files");
}

Status Transfers::Add(Connection* connection, const json::object& hello, const LogKey& key) {
  const std::string kind = GetStringOr(hello, "kind", "");
  if (kind == "outputs") return outputs_.Add(connection, key, hello);
  if (kind == "files") files_.Add(connection);
  if (kind == "fetch_outputs") relay_.Add(connection);
  if (kind == "give_files") file_receiver_.Add(connection);
  return Status::Ok();
}

bool Transfers::Serves(Connection* connection) const {
  return files_.Serves(connection) || outputs_.Serves(connection) || relay_.Serves(connection) ||
         file_receiver_.Serves(connection);
}

void Transfers::Remove(Connection* connection) {
  files_.Remove(connection);
  outputs_.Remove(connection);
  relay_.Remove(connection);
  file_receiver_.Remove(connection);
}

Status Transfers::Received(Connection* connection, const std::string& type,
                           const json::object& message) {
  if (files_.Serves(connection)) return files_.Received(connection, type, message);
  if (outputs_.Serves(connection)) return outputs_.Received(connection, type, message);
  if (relay_.Serves(connection)) return relay_.Received(type, message);
  return file_receiver_.Received(type, message);
}

Status Transfers::Received(Connection* connection, std::string_view bytes) {
  if (outputs_.Serves(connection)) return outputs_.Received(connection, bytes);
  if (file_receiver_.Serves(connection)) return file_receiver_.Received(bytes);
  return InvalidArgument("bytes that were not requested");
}

}  // namespace shoal::rendezvous
