#include "model/save_model.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/fault_injection.h"
#include "base/file.h"
#include "base/id.h"
#include "base/log.h"
#include "base/output_file.h"
#include "base/portable_json.h"
#include "model/model_files.h"

namespace shoal::model {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMetadata = "model.json";
// The files of models of all kinds. model.json is last: it lists the digests of the others.
constexpr std::array<std::string_view, 10> kFiles = {
    "vectors.bin", "vectors.txt", "vocab.txt",  "weights.bin",   "weights.txt",
    "factors.bin", "libfm.txt",   "xlearn.txt", "optimizer.bin", "model.json"};
constexpr size_t kMaxMetadata = 64 << 20;

bool IsOurs(const fs::path& name) {
  return std::find(kFiles.begin(), kFiles.end(), name.string()) != kFiles.end();
}

// Removes a trailing slash and follows symbolic links.
Result<fs::path> RealPath(const fs::path& directory) {
  if (directory.empty()) return InvalidArgument("no output directory was named");
  const auto named = FollowLinks(directory.has_filename() ? directory : directory.parent_path());
  if (!named.ok()) return InvalidArgument("output directory: " + named.status().message());
  std::error_code error;
  fs::path real = fs::weakly_canonical(*named, error);
  if (error)
    return InvalidArgument("output directory " + directory.string() + ": " + error.message());
  return real;
}

// Names that may be ignored: of a killed save, or of a removed file that NFS keeps for a reader.
bool IsLeftover(const fs::path& name) {
  return name.string().starts_with(".saving-") || name.string().starts_with(".nfs");
}

enum class Others { kRefused, kLeftAlone };  // how to treat files that are not part of a model

// The first file in the directory that prevents saving a model; empty if there is none. A link or a
// directory does, whatever its name: only regular files are replaced.
std::string ForeignFile(const fs::path& directory, Others others) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const fs::path name = entry.path().filename();
    const bool replaced =
        IsOurs(name) && entry.symlink_status(error).type() == fs::file_type::regular;
    const bool left = IsLeftover(name) || (!IsOurs(name) && others == Others::kLeftAlone);
    if (!replaced && !left) return name.string();
  }
  return "";
}

// True if the directory is the working directory of a visible process, such as the user's shell:
// after an exchange, that process would be in a deleted directory.
bool IsWorkingDirectory(const fs::path& directory) {
  struct stat ours {};
  if (::stat(directory.c_str(), &ours) != 0) return false;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    struct stat cwd {};
    if (::stat((entry.path() / "cwd").c_str(), &cwd) == 0 && cwd.st_dev == ours.st_dev &&
        cwd.st_ino == ours.st_ino)
      return true;
  }
  return false;
}

// --- the staging directory ---

// A staging directory. Holds a lock while it exists, so that other processes do not take it for a
// leftover; removes itself when destroyed.
class Staging {
 public:
  // Creates it with the attributes of the directory `like`, if that exists.
  static Result<Staging> Create(const fs::path& parent, const std::string& prefix,
                                const fs::path& like) {
    fs::path path = parent / (prefix + RandomHex(6));
    const bool exists = fs::exists(like);
    if (::mkdir(path.c_str(), exists ? 0700 : 0777) != 0)
      return ErrnoStatus(errno, "cannot make " + path.string());
    Staging staging(path);
    TRY_ASSIGN(staging.lock_, OpenFile(path, O_RDONLY | O_DIRECTORY));
    (void)::flock(staging.lock_.get(),
                  LOCK_EX | LOCK_NB);  // the name is not known to other processes yet
    if (exists) {
      TRY_ASSIGN(const UniqueFd old, OpenFile(like, O_RDONLY | O_DIRECTORY));
      TRY(CopyAttributes(old.get(), staging.lock_.get()).With(path.string()));
    }
    return staging;
  }
  Staging(Staging&& other) noexcept
      : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}
  Staging& operator=(Staging&&) = delete;
  ~Staging() {
    if (!path_.empty()) Remove(path_);
  }
  const fs::path& path() const { return path_; }
  void Release() { path_.clear(); }

  // Removes what killed saves have left.
  static void RemoveLeftovers(const fs::path& parent, const std::string& prefix) {
    std::error_code ignored;  // cleanup only
    for (const auto& entry : fs::directory_iterator(parent, ignored)) {
      if (!entry.path().filename().string().starts_with(prefix)) continue;
      auto lock = OpenFile(entry.path(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
      if (lock.ok() && ::flock(lock->get(), LOCK_EX | LOCK_NB) == 0) Remove(entry.path());
    }
  }
  // Removes only files of models; if there are others, the directory stays.
  static void Remove(const fs::path& path) {
    std::error_code ignored;
    for (const std::string_view name : kFiles) fs::remove(path / name, ignored);
    fs::remove(path, ignored);
  }

 private:
  explicit Staging(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
  UniqueFd lock_;
};

// --- the files ---

Result<std::string> WriteVocabulary(int fd, const ModelContent& content) {
  Sha256 digest;
  std::string block;
  for (uint64_t row = 0; row < content.vectors.rows; ++row) {
    fmt::format_to(std::back_inserter(block), "{} {}\n", content.vectors.word(row),
                   content.count(row));
    if (block.size() < 512 * 1024 && row + 1 < content.vectors.rows) continue;
    TRY(WriteAll(fd, block));
    digest.Add(block);
    block.clear();
  }
  return digest.Finish();
}

// Returns the digest of vectors.bin.
Result<std::string> WriteVectorModel(ModelFiles& files, const ModelContent& content) {
  TRY_ASSIGN(std::string digest, files.Add("vectors.bin", [&](int fd) {
    return WriteVectors(fd, Format::kBinary, content.vectors);
  }));
  if (content.text) {
    TRY(files
            .Add("vectors.txt",
                 [&](int fd) { return WriteVectors(fd, Format::kText, content.vectors); })
            .status());
  }
  TRY(files.Add("vocab.txt", [&](int fd) { return WriteVocabulary(fd, content); }).status());
  json::object metadata{
      {"vectors", {{"rows", content.vectors.rows}, {"dim", content.vectors.dim}}}};
  for (const auto& [key, value] : content.metadata) metadata[key] = value;
  TRY(files.AddMetadata(kVectorsFormat, metadata));
  return digest;
}

// --- putting it in place ---

enum class Exchange { kDone, kImpossible };

// Exchanges the two directories in one step.
Result<Exchange> ExchangeDirectories(const fs::path& from, const fs::path& to) {
  if (!FaultPoint("model.exchange").ok()) return Exchange::kImpossible;
  const bool exists = fs::exists(to);
  const unsigned flags = exists ? RENAME_EXCHANGE : RENAME_NOREPLACE;
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0) return Exchange::kDone;
  if (!exists && ::rename(from.c_str(), to.c_str()) == 0) return Exchange::kDone;
  switch (errno) {
    case EINVAL:  // the file system cannot exchange, or `to` is a parent of `from`
    case ENOSYS:
    case EBUSY:  // a mount point
    case EXDEV:
    case EACCES:
    case EPERM:
      return Exchange::kImpossible;
    default:
      return ErrnoStatus(errno,
                         fmt::format("cannot exchange {} and {}", from.string(), to.string()));
  }
}

// Moves other files from the old to the new directory.
void KeepForeignFiles(const fs::path& old_directory, const fs::path& new_directory) {
  std::error_code ignored;  // on failure the files and their directory stay
  for (const auto& entry : fs::directory_iterator(old_directory, ignored)) {
    if (!IsOurs(entry.path().filename())) {
      fs::rename(entry.path(), new_directory / entry.path().filename(), ignored);
    }
  }
}

Result<std::string> WriteAside(const fs::path& staging, const fs::path& old,
                               const WriteModel& write) {
  ModelFiles files(staging, old);
  TRY_ASSIGN(std::string digest, write(files));
  TRY(SyncDirectory(staging));
  return digest;
}

// Writes beside the old directory and exchanges the two. An empty digest means that this is not
// possible here.
Result<std::string> SaveBeside(const fs::path& directory, const WriteModel& write) {
  const std::string prefix = "." + directory.filename().string() + ".saving-";
  Staging::RemoveLeftovers(directory.parent_path(), prefix);
  auto staging = Staging::Create(directory.parent_path(), prefix, directory);
  if (!staging.ok()) {
    if (staging.status().code() == Code::kResourceExhausted) return staging.status();
    return std::string();
  }
  TRY_ASSIGN(std::string digest, WriteAside(staging->path(), directory, write));
  const bool existed = fs::exists(directory);
  TRY_ASSIGN(const Exchange exchange, ExchangeDirectories(staging->path(), directory));
  if (exchange == Exchange::kImpossible) return std::string();
  if (existed) {
    KeepForeignFiles(staging->path(), directory);
  } else {
    staging->Release();
  }
  TRY(SyncDirectory(directory.parent_path()));
  return digest;
}

// Writes inside the old directory and replaces file by file.
Result<std::string> SaveInside(const fs::path& directory, const WriteModel& write) {
  TRY(MakeDirectories(directory, 0777));
  Staging::RemoveLeftovers(directory, ".saving-");
  TRY_ASSIGN(const Staging staging, Staging::Create(directory, ".saving-", ""));
  TRY_ASSIGN(std::string digest, WriteAside(staging.path(), directory, write));
  for (const std::string_view name : kFiles) {
    if (!fs::exists(staging.path() / name)) {
      std::error_code ignored;  // e.g. vectors.txt, if this model has none
      fs::remove(directory / name, ignored);
      continue;
    }
    if (::rename((staging.path() / name).c_str(), (directory / name).c_str()) != 0) {
      return ErrnoStatus(errno, "cannot put " + (directory / name).string() + " in place");
    }
  }
  TRY(SyncDirectory(directory));
  return digest;
}

Status CheckParent(const fs::path& directory) {
  fs::path parent = directory.parent_path();
  std::error_code ignored;
  while (!fs::exists(parent, ignored) && parent.has_relative_path()) parent = parent.parent_path();
  if (!fs::is_directory(parent, ignored)) {
    return FailedPrecondition(
        fmt::format("output directory {} cannot be made: {} is not a directory", directory.string(),
                    parent.string()));
  }
  if (::access(parent.c_str(), W_OK | X_OK) != 0) {
    return FailedPrecondition(
        fmt::format("output directory {} cannot be made: {} may not be written", directory.string(),
                    parent.string()));
  }
  return Status::Ok();
}

}  // namespace

namespace {

Status CheckPlace(const fs::path& given, Others others) {
  TRY_ASSIGN(const fs::path directory, RealPath(given));
  std::error_code error;
  if (!fs::exists(directory, error)) return CheckParent(directory);
  if (!fs::is_directory(directory, error)) {
    return FailedPrecondition("output directory " + given.string() +
                              " exists and is a file; name another");
  }
  bool empty = true;
  for (const auto& entry : fs::directory_iterator(directory, error))
    empty = empty && !IsOurs(entry.path().filename());
  if (const std::string name = ForeignFile(directory, others); !name.empty()) {
    return FailedPrecondition(fmt::format(
        "output directory {} exists and holds '{}', which is none of a model's files; name a new "
        "directory, or one that holds a model, which will be replaced",
        given.string(), name));
  }
  if (error) {
    return FailedPrecondition(
        fmt::format("output directory {} cannot be read: {}", given.string(), error.message()));
  }
  if (::access(directory.c_str(), W_OK | X_OK) != 0) {
    return FailedPrecondition("output directory " + given.string() + " may not be written");
  }
  if (empty || ReadModelMetadata(directory).ok()) return Status::Ok();
  return FailedPrecondition(
      fmt::format("output directory {} exists and holds vectors that Shoal did not write (there is "
                  "no model.json "
                  "of a model); name a new directory",
                  given.string()));
}

}  // namespace

Status CheckModelOutput(const fs::path& given) { return CheckPlace(given, Others::kRefused); }

Result<std::string> ModelFiles::Add(std::string_view name,
                                    const std::function<Result<std::string>(int fd)>& write) {
  TRY_ASSIGN(const UniqueFd fd, OpenFile(directory_ / name, O_WRONLY | O_CREAT | O_EXCL, 0666));
  if (const auto old = OpenFile(old_ / name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK); old.ok()) {
    const Status kept = CopyAttributes(old->get(), fd.get());
    if (!kept.ok()) LogInfo("{}: {}", (old_ / name).string(), kept.message());
  }
  TRY_ASSIGN(std::string digest, write(fd.get()));
  TRY(FaultPoint("model.sync"));
  if (::fsync(fd.get()) != 0) {
    return ErrnoStatus(errno, "cannot sync " + (directory_ / name).string());
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return ErrnoStatus(errno, "cannot stat a new file");
  files_[name] = json::object{{"bytes", static_cast<int64_t>(status.st_size)}, {"sha256", digest}};
  return digest;
}

Status ModelFiles::AddMetadata(std::string_view format, const json::object& given) {
  json::object metadata{{"format", format},
                        {"version", 1},
                        {"shoal", SHOAL_VERSION},
                        {"created", FormatWall(RealClock::Get()->Wall())}};
  for (const auto& [key, value] : given) metadata[key] = value;
  metadata["files"] = files_;
  const std::string text = ToPrettyText(PortableJson(metadata)) + "\n";
  return Add(kMetadata,
             [&](int fd) -> Result<std::string> {
               TRY(WriteAll(fd, text));
               return Sha256Hex(text);
             })
      .status();
}

namespace {

Result<SavedModel> SaveAt(const fs::path& directory, const WriteModel& write) {
  TRY(MakeDirectories(directory.parent_path(), 0777));
  const bool inside =
      !ForeignFile(directory, Others::kRefused).empty() || IsWorkingDirectory(directory);
  auto digest = inside ? Result<std::string>(std::string()) : SaveBeside(directory, write);
  if (digest.ok() && digest->empty()) digest = SaveInside(directory, write);
  if (!digest.ok()) return digest.status();
  return SavedModel{directory, std::move(digest).value()};
}

// Saves a trained model elsewhere if its directory, which was usable before the training, no longer
// is.
Result<SavedModel> SaveElsewhere(const fs::path& given, const WriteModel& write) {
  fs::path other = given.has_filename() ? given : given.parent_path();
  other += ".saved";
  TRY(CheckPlace(other, Others::kLeftAlone));
  TRY_ASSIGN(const fs::path directory, RealPath(other));
  return SaveAt(directory, write);
}

}  // namespace

Result<SavedModel> SaveModelFiles(const fs::path& given, const WriteModel& write) {
  if (const Status fits = CheckPlace(given, Others::kLeftAlone); !fits.ok()) {
    const auto elsewhere = SaveElsewhere(given, write);
    if (!elsewhere.ok()) return fits;
    return FailedPrecondition(fits.message() + "; the model is in " +
                              elsewhere->directory.string());
  }
  TRY_ASSIGN(const fs::path directory, RealPath(given));
  auto saved = SaveAt(directory, write);
  if (!saved.ok()) return saved.status().With("cannot save the model to " + given.string());
  return saved;
}

Result<SavedModel> SaveModel(const fs::path& directory, const ModelContent& content) {
  return SaveModelFiles(directory,
                        [&](ModelFiles& files) { return WriteVectorModel(files, content); });
}

Result<json::object> ReadModelMetadata(const fs::path& directory) {
  const fs::path path = directory / kMetadata;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return NotFound("there is no model in " + directory.string());
  TRY_ASSIGN(const std::string text, ReadFile(path, kMaxMetadata));
  auto metadata = ParseJsonObject(text);
  const std::string format = metadata.ok() ? GetStringOr(*metadata, "format", "") : "";
  constexpr std::array kFormats = {kVectorsFormat, kLinearFormat, kFactorFormat,
                                   kFieldFactorFormat};
  if (std::find(kFormats.begin(), kFormats.end(), format) == kFormats.end()) {
    return DataLoss(path.string() + " is not the model.json of a model");
  }
  return metadata;
}

namespace {

// The SHA-256 of the file in model.json; empty if absent.
std::string SavedDigest(const json::object& metadata, std::string_view name) {
  const json::value* const files = metadata.if_contains("files");
  if (files == nullptr || !files->is_object()) return "";
  const json::value* const file = files->as_object().if_contains(name);
  return file == nullptr || !file->is_object() ? "" : GetStringOr(file->as_object(), "sha256", "");
}

}  // namespace

Status CheckModelFile(const fs::path& directory, std::string_view name, std::string_view bytes) {
  const Result<json::object> metadata = ReadModelMetadata(directory);
  if (metadata.status().code() == Code::kNotFound) return Status::Ok();
  TRY(metadata.status());
  const std::string saved = SavedDigest(*metadata, name);
  if (saved.empty() || saved == Sha256Hex(bytes)) return Status::Ok();
  return DataLoss(
      fmt::format("{} is not the file that {} was saved with: its SHA-256 is another; the "
                  "directory holds files of two models. Train the model again, or copy it whole",
                  (directory / name).string(), kMetadata));
}

Result<std::string> DigestOf(const fs::path& path) {
  TRY_ASSIGN(const fs::path file, FindVectors(path));
  TRY_ASSIGN(const UniqueFd fd, OpenFile(file, O_RDONLY));
  Sha256 digest;
  std::string block(1 << 20, '\0');
  for (;;) {
    const ssize_t got = ::read(fd.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "cannot read " + file.string());
    if (got == 0) return digest.Finish();
    digest.Add(std::string_view(block).substr(0, static_cast<size_t>(got)));
  }
}

}  // namespace shoal::model
