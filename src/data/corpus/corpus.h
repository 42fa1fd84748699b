// Exact and disjoint parts of a text of many files, without splitting or copying anything: every
// worker opens the same files and cuts the same parts. Workers of a trainer call this; the
// tokenizer reads the shards.
//
// The rule. The files in order are one line of text; a file's end is a sentence's end and never
// joins two words. The line is cut at `count - 1` places of equal distance. A place inside a line
// of text moves to the start of the next line if that begins within kLineSearch bytes (so that
// sentences stay whole), and otherwise stays, and a word belongs to the shard in which its first
// byte lies. So each word is in exactly one shard, and the shards in order give the words in order.
//
// Compressed files cannot be entered in the middle. A cut goes to the nearest border of such a file
// if that is near enough (5 % of a shard); otherwise both neighbours decompress that file, and each
// takes its part of the decompressed text. Compressed bytes count kCompressedWeight times in the
// balance, for their text is longer than they are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/corpus/source_file.h"

namespace shoal::data {

inline constexpr uint64_t kEndOfFile = UINT64_MAX;
inline constexpr uint64_t kLineSearch = 64 * 1024;
inline constexpr uint64_t kCompressedWeight = 3;

// Bytes [begin, end) of one file's text, as the places lie before they are moved to a line's start;
// end may be kEndOfFile.
struct Segment {
  size_t file = 0;
  uint64_t begin = 0;
  uint64_t end = kEndOfFile;
};

// Empty where there are more shards than bytes.
struct Shard {
  uint64_t index = 0;
  uint64_t count = 1;
  std::vector<Segment> segments;
};

// A place in the line of files: byte `position` of a file's text. The end is {number of files, 0}.
struct ShardBoundary {
  uint64_t file = 0;
  uint64_t position = 0;
  bool operator==(const ShardBoundary&) const = default;
};

// The files of one text. Cheap to copy; const calls are thread-safe.
class Corpus {
 public:
  // Inspects every file, in the order given ("file:///a/b" is /a/b). Empty files are left out with
  // a warning in the log. Errors as InspectFile; InvalidArgument if there is no file, or all are
  // empty.
  static Result<Corpus> Open(const std::vector<std::string>& paths);

  const std::vector<SourceFile>& files() const;
  // On disk, over all files.
  uint64_t stored_bytes() const;
  // Of the number, order, sizes and kinds of the files: equal for all workers that see the same
  // data.
  uint64_t fingerprint() const;

  // Part `index` of `count` (index < count). A worker of W with T threads takes the parts
  // [worker·T, worker·T + T) of W·T. Everybody must use the same count. O(files), except that a
  // compressed file which a cut enters is decompressed once to learn its length (remembered).
  Result<Shard> MakeShard(uint64_t index, uint64_t count) const;

  // Shard `index` of `count` of part `part` of `parts` (part < parts, index < count): together they
  // are exactly MakeShard(part, parts), whatever the count. So workers that cut their parts into
  // unlike numbers of shards, a thread each, still leave no gap and no overlap between them.
  Result<Shard> MakeShardWithin(uint64_t part, uint64_t parts, uint64_t index,
                                uint64_t count) const;

  // Where part `index` of `count` begins (index <= count): part `index - 1` ends there.
  Result<ShardBoundary> FindBoundary(uint64_t index, uint64_t count) const;

  // Which parts of `count` read a file, by its place in files(), and about how many of its stored
  // bytes; as MakeShard, but no compressed file is looked into. O(parts that read it).
  std::map<uint64_t, uint64_t> BytesByPart(size_t file, uint64_t count) const;

  // The same text, with copies of some of its files, by their places in files(), read instead.
  Corpus WithCopies(const std::map<size_t, std::filesystem::path>& copies) const;

 private:
  struct State;
  explicit Corpus(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace shoal::data
