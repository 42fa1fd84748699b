// Reads vectors of either format from untrusted files: through one buffer, with every number
// checked before memory is allocated for it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "model/vectors.h"

namespace shoal::model {
namespace {

constexpr size_t kBlock = 1024 * 1024;
constexpr size_t kMaxHeader = 64;
constexpr size_t kMaxNumber = 64;  // characters of one value in text

// The bytes of a file or of memory, through a window that grows to what one row needs.
class Input {
 public:
  Input(UniqueFd fd, uint64_t size, std::string name)
      : fd_(std::move(fd)), size_(size), name_(std::move(name)) {}
  Input(std::string_view bytes, std::string_view name)
      : size_(bytes.size()), name_(name), window_(bytes), ended_(true) {}

  uint64_t size() const { return size_; }
  const std::string& name() const { return name_; }
  std::string_view rest() const { return std::string_view(window_).substr(at_); }
  void Skip(size_t bytes) { at_ += bytes; }

  // Ensures that rest() holds at least `bytes`, or all remaining bytes.
  Status Want(size_t bytes) {
    while (window_.size() - at_ < bytes && !ended_) {
      window_.erase(0, std::exchange(at_, 0));
      const size_t have = window_.size();
      window_.resize(have + std::max(kBlock, bytes - have));
      ssize_t got = 0;
      do {
        got = ::read(fd_.get(), window_.data() + have, window_.size() - have);
      } while (got < 0 && errno == EINTR);
      window_.resize(have + static_cast<size_t>(std::max<ssize_t>(got, 0)));
      if (got < 0) return ErrnoStatus(errno, "cannot read " + name_);
      ended_ = got == 0;
    }
    return Status::Ok();
  }
  // The next line of at most `limit` bytes, without its newline, valid until the next call. At the
  // end of the input: the rest. OutOfRange if the line is longer.
  Result<std::string_view> Line(size_t limit) {
    size_t looked = 0;
    for (;;) {
      const size_t end = rest().find('\n', looked);
      if (end != std::string_view::npos && end <= limit) {
        const std::string_view line = rest().substr(0, end);
        at_ += end + 1;
        return line;
      }
      looked = rest().size();
      if (looked > limit) return OutOfRange("a line is too long");
      if (ended_) {
        const std::string_view line = rest();
        at_ += line.size();
        return line;
      }
      TRY(Want(looked + 1));
    }
  }

 private:
  UniqueFd fd_;
  const uint64_t size_;
  const std::string name_;
  std::string window_;
  size_t at_ = 0;
  bool ended_ = false;
};

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

std::string_view NextField(std::string_view* line) {
  size_t begin = 0;
  while (begin < line->size() && IsBlank((*line)[begin])) ++begin;
  size_t end = begin;
  while (end < line->size() && !IsBlank((*line)[end])) ++end;
  const std::string_view field = line->substr(begin, end - begin);
  line->remove_prefix(end);
  return field;
}

template <typename T>
bool Parse(std::string_view text, T* value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, *value);
  // As other readers do, decimals outside of float's range (1e-50, 1e50) become 0 or infinity.
  if constexpr (std::is_same_v<T, float>) {
    double wide = 0;
    if (result.ec == std::errc::result_out_of_range &&
        std::from_chars(text.data(), end, wide).ptr == end) {
      *value = static_cast<float>(wide);
      return true;
    }
  }
  return !text.empty() && result.ec == std::errc() && result.ptr == end;
}

struct Shape {
  uint64_t rows = 0;
  uint64_t dim = 0;
};

class Reader {
 public:
  Reader(Input* input, const ReadOptions& options) : input_(*input), options_(options) {}

  Result<Vectors> Read() {
    TRY(ReadHeader());
    TRY_ASSIGN(const bool text, LooksLikeText());
    const uint64_t least = text ? 2 * shape_.dim + 1 : 4 * shape_.dim + 2;
    if (shape_.rows > input_.size() / least) {
      return Wrong(
          fmt::format("its first line promises {} rows of {} values, but the file has only "
                      "{} bytes: it is cut off",
                      shape_.rows, shape_.dim, input_.size()));
    }
    const uint64_t rows = std::min(shape_.rows, options_.max_rows);
    if (rows * shape_.dim > options_.max_bytes / sizeof(float)) {
      return ResourceExhausted(
          fmt::format("{}: {} rows of {} values need more than the {} bytes that "
                      "are allowed",
                      input_.name(), rows, shape_.dim, options_.max_bytes));
    }
    vectors_.dim = shape_.dim;
    vectors_.words.reserve(rows);
    vectors_.values.reserve(rows * shape_.dim);
    for (uint64_t row = 0; row < rows; ++row) TRY(text ? TextRow(row) : BinaryRow(row));
    return std::move(vectors_);
  }

 private:
  Status Wrong(std::string_view what) const {
    return DataLoss(fmt::format("{}: {}", input_.name(), what));
  }
  Status WrongRow(uint64_t row, std::string_view what) const {
    return Wrong(fmt::format("row {}: {}", row + 1, what));
  }

  Status ReadHeader() {
    auto line = input_.Line(kMaxHeader);
    std::string_view rest = line.ok() ? *line : std::string_view();
    const std::string_view rows = NextField(&rest);
    const std::string_view dim = NextField(&rest);
    if (!Parse(rows, &shape_.rows) || !Parse(dim, &shape_.dim) || !NextField(&rest).empty()) {
      return Wrong("these are no word vectors: the first line must be '<rows> <dim>'");
    }
    if (shape_.rows > kMaxRows || shape_.dim == 0 || shape_.dim > kMaxDim) {
      return Wrong(
          fmt::format("got {} rows of {} values, expected at most {} rows of 1 to {} values",
                      shape_.rows, shape_.dim, kMaxRows, kMaxDim));
    }
    return Status::Ok();
  }

  size_t LongestLine() const { return kMaxWordBytes + shape_.dim * kMaxNumber; }

  // True if the first row is a word and `dim` numbers.
  Result<bool> LooksLikeText() {
    // The usual size of a row of text; longer rows are found in the second step.
    for (size_t bytes = 64 + 16 * shape_.dim;; bytes = LongestLine() + 1) {
      TRY(input_.Want(bytes));
      std::string_view row = input_.rest();
      const size_t end = row.find('\n');
      if (end == std::string_view::npos && row.size() >= bytes && bytes <= LongestLine()) continue;
      row = row.substr(0, end);
      NextField(&row);
      float value = 0;
      for (uint64_t i = 0; i < shape_.dim; ++i) {
        if (!Parse(NextField(&row), &value)) return false;
      }
      return NextField(&row).empty();
    }
  }

  Status AddWord(std::string_view word, uint64_t row) {
    if (word.empty()) return WrongRow(row, "the word is empty");
    vectors_.words.emplace_back(word);
    return Status::Ok();
  }

  Status TextRow(uint64_t row) {
    auto line = input_.Line(LongestLine());
    if (!line.ok()) return WrongRow(row, line.status().message());
    std::string_view rest = *line;
    const std::string_view word = NextField(&rest);
    if (word.empty()) {
      return WrongRow(row, fmt::format("the file ends, {} rows were promised", shape_.rows));
    }
    if (word.size() > kMaxWordBytes) return WrongRow(row, "the word is too long");
    TRY(AddWord(word, row));
    for (uint64_t i = 0; i < shape_.dim; ++i) {
      const std::string_view field = NextField(&rest);
      float value = 0;
      if (field.empty()) {
        return WrongRow(row, fmt::format("has {} values, expected {}", i, shape_.dim));
      }
      if (!Parse(field, &value)) {
        return WrongRow(row, fmt::format("value {}: got '{}', expected a number", i + 1,
                                         field.substr(0, kMaxNumber)));
      }
      vectors_.values.push_back(value);
    }
    if (!NextField(&rest).empty()) {
      return WrongRow(row, fmt::format("has more than {} values", shape_.dim));
    }
    return Status::Ok();
  }

  // "word" SPACE float32 × dim; word2vec.c writes a newline after it, other programs do not.
  Status BinaryRow(uint64_t row) {
    const size_t bytes = shape_.dim * sizeof(float);
    TRY(input_.Want(1 + kMaxWordBytes + 1 + bytes));
    while (input_.rest().starts_with('\n')) input_.Skip(1);
    const std::string_view rest = input_.rest();
    const size_t space = rest.substr(0, kMaxWordBytes + 1).find(' ');
    if (space == std::string_view::npos) {
      return WrongRow(row, rest.size() > kMaxWordBytes
                               ? "no space ends the word: this is no word2vec format"
                               : fmt::format("the file ends, {} rows were promised", shape_.rows));
    }
    if (rest.size() - space - 1 < bytes) return WrongRow(row, "the file ends inside the vector");
    TRY(AddWord(rest.substr(0, space), row));
    const size_t at = vectors_.values.size();
    vectors_.values.resize(at + shape_.dim);
    std::memcpy(vectors_.values.data() + at, rest.data() + space + 1, bytes);
    input_.Skip(space + 1 + bytes);
    return Status::Ok();
  }

  Input& input_;
  const ReadOptions options_;
  Shape shape_;
  Vectors vectors_;
};

}  // namespace

Result<Vectors> ParseVectors(std::string_view bytes, std::string_view name,
                             const ReadOptions& options) {
  Input input(bytes, name);
  return Reader(&input, options).Read();
}

Result<std::filesystem::path> FindVectors(const std::filesystem::path& path) {
  std::error_code ignored;  // a missing file is reported below
  if (!std::filesystem::exists(path, ignored)) {
    return NotFound("there is no model or vectors file " + path.string() +
                    "; expected the --output of `shoal train word2vec`, or a file of vectors");
  }
  if (!std::filesystem::is_directory(path, ignored)) return path;
  for (const char* name : {"vectors.bin", "vectors.txt"}) {
    if (std::filesystem::exists(path / name, ignored)) return path / name;
  }
  return NotFound("the directory " + path.string() +
                  " holds no model: there is neither vectors.bin nor vectors.txt in it");
}

Result<Vectors> ReadVectors(const std::filesystem::path& path, const ReadOptions& options) {
  TRY_ASSIGN(const std::filesystem::path file, FindVectors(path));
  TRY_ASSIGN(UniqueFd fd, OpenFile(file, O_RDONLY | O_NONBLOCK));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return ErrnoStatus(errno, "cannot read " + file.string());
  if (!S_ISREG(status.st_mode)) return InvalidArgument(file.string() + " is not a regular file");
  Input input(std::move(fd), static_cast<uint64_t>(status.st_size), file.string());
  return Reader(&input, options).Read();
}

}  // namespace shoal::model
