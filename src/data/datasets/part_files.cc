#include "data/datasets/part_files.h"

#include <utility>

namespace shoal::data {
namespace {

constexpr size_t kBlock = 1 << 20;
constexpr uint64_t kMaxMark = 64 << 20;

}  // namespace

Result<PartFile> PartFile::Create(ObjectStores* stores, const std::string& folder,
                                  const std::string& name) {
  TRY_ASSIGN(auto writer, stores->Create(folder + name));
  return PartFile(std::move(writer), name);
}

Status PartFile::Flush() {
  digest_.Add(block_);
  info_.bytes += block_.size();
  TRY(writer_->Append(block_));
  block_.clear();
  return Status::Ok();
}

Status PartFile::Append(std::string_view bytes) {
  block_.append(bytes);
  return block_.size() < kBlock ? Status::Ok() : Flush();
}

Result<PartFileInfo> PartFile::Finish() {
  TRY(Flush());
  TRY(writer_->Finish().status());
  info_.sha256 = digest_.Finish();
  return info_;
}

uint64_t DoneFiles::records() const {
  uint64_t all = 0;
  for (const PartFileInfo& file : files) all += file.records;
  return all;
}

json::object ToJson(const DoneFiles& done) {
  json::array files;
  for (const PartFileInfo& file : done.files)
    files.push_back(json::object{{"name", file.name},
                                 {"records", file.records},
                                 {"bytes", file.bytes},
                                 {"sha256", file.sha256}});
  return {{"of", done.of}, {"files", std::move(files)}};
}

Result<DoneFiles> DoneFilesFromJson(const json::object& object) {
  DoneFiles done;
  TRY_ASSIGN(done.of, GetString(object, "of"));
  const json::value* const files = object.if_contains("files");
  if (files == nullptr || !files->is_array()) return InvalidArgument("files: expected a list");
  for (const json::value& one : files->get_array()) {
    if (!one.is_object()) return InvalidArgument("files: expected objects");
    PartFileInfo file;
    TRY_ASSIGN(file.name, GetString(one.get_object(), "name"));
    TRY_ASSIGN(const int64_t records, GetInt(one.get_object(), "records"));
    TRY_ASSIGN(const int64_t bytes, GetInt(one.get_object(), "bytes"));
    TRY_ASSIGN(file.sha256, GetString(one.get_object(), "sha256"));
    if (records < 0 || bytes < 0) return InvalidArgument("files: got a negative number");
    file.records = static_cast<uint64_t>(records);
    file.bytes = static_cast<uint64_t>(bytes);
    done.files.push_back(std::move(file));
  }
  return done;
}

Result<DoneFiles> ReadDone(ObjectStores* stores, const std::string& folder,
                           const std::string& mark) {
  TRY_ASSIGN(const auto object, stores->Open(folder + mark));
  const auto wrong = [&](const std::string& why) {
    return DataLoss(folder + mark + " is damaged: " + why + "; remove it to write the files again");
  };
  if (object->info().bytes > kMaxMark) return wrong("it is too long");
  std::string text(object->info().bytes, '\0');
  TRY_ASSIGN(const size_t got, object->ReadAt(0, text.data(), text.size()));
  text.resize(got);
  const auto parsed = ParseJsonObject(text);
  if (!parsed.ok()) return wrong(parsed.status().message());
  auto done = DoneFilesFromJson(*parsed);
  if (!done.ok()) return wrong(done.status().message());
  return done;
}

Status WriteDone(ObjectStores* stores, const std::string& folder, const std::string& mark,
                 const DoneFiles& done) {
  TRY_ASSIGN(const auto writer, stores->Create(folder + mark));
  TRY(writer->Append(ToPrettyText(ToJson(done)) + "\n"));
  return writer->Finish().status();
}

}  // namespace shoal::data
