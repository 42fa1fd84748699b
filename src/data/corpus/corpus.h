// Divides a text of many files into exact, disjoint shards without copying anything. Every worker
// opens the same files and computes the same shards; tokenizers and example readers read them.
//
// The rule: the files in order form one line of bytes. The end of a file ends a sentence and never
// joins two words. The line is cut at `count − 1` equally spaced positions. A position inside a
// line of text moves to the start of the next line if that is within kLineSearch bytes, so that
// sentences stay whole; otherwise it stays, and a word belongs to the shard in which its first byte
// lies. So each word is in exactly one shard, and the shards in order give the words in order.
//
// The workers of a training may have parts that are not one range of bytes but many small ones
// (Division), so that none has a time of its own in data that are ordered by time.
//
// Compressed files cannot be entered in the middle. A cut moves to the nearest end of such a file
// if that is near enough (5 % of a shard); otherwise both neighbours decompress the file and each
// reads its part of the text. Compressed bytes count kCompressedWeight times in the balance,
// because their text is longer.
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/corpus/source_file.h"
#include "data/objects/object_context.h"

namespace shoal::data {

inline constexpr uint64_t kEndOfFile = UINT64_MAX;
inline constexpr uint64_t kLineSearch = 64 * 1024;
inline constexpr uint64_t kCompressedWeight = 3;

// Bytes [begin, end) of one file's text, before positions move to the start of a line; `end` may be
// kEndOfFile.
struct Segment {
  size_t file = 0;
  uint64_t begin = 0;
  uint64_t end = kEndOfFile;
};

// A list of segments, read in order. Empty if there are more shards than bytes.
struct Shard {
  uint64_t index = 0;
  uint64_t count = 1;
  std::vector<Segment> segments;
};

// A position in the corpus: byte `position` of the text of file `file`. The end is {number of
// files, 0}.
struct ShardBoundary {
  uint64_t file = 0;
  uint64_t position = 0;
  auto operator<=>(const ShardBoundary&) const = default;
};

// From `begin` to before `end`.
struct ShardRange {
  ShardBoundary begin;
  ShardBoundary end;
  bool operator==(const ShardRange&) const = default;
};

// How a corpus is divided among workers: into `parts` of about the same size, each of `blocks`
// ranges of about the same size, 1 or more. Of each `parts` blocks that follow each other a part
// has one; the parts take them in turn, there and back (0 1 2, 2 1 0, 0 1 2, …), so that the middle
// of every part is the middle of the whole.
struct Division {
  uint64_t parts = 1;
  uint64_t blocks = 1;

  // Blocks of all parts are numbered in the order of the bytes.
  uint64_t PartOf(uint64_t block) const {
    const uint64_t place = block % parts;
    return block / parts % 2 == 0 ? place : parts - 1 - place;
  }
};

// The files of one text. Immutable and cheap to copy (shared state); all calls are thread-safe.
class Corpus {
 public:
  // Inspects the files in the given order ("file:///a/b" is /a/b). URIs of other places may be
  // patterns, which become the objects that match, sorted; objects are pinned in the version of
  // now (object_stores.h). Empty files are dropped with a warning in the log. Errors as InspectFile
  // and InspectObject; InvalidArgument if no file is left.
  static Result<Corpus> Open(const std::vector<std::string>& paths);
  // The same with other settings of objects.
  static Result<Corpus> Open(const std::vector<std::string>& paths, ObjectContext context,
                             Content content = Content::kText);

  const std::vector<SourceFile>& files() const;
  // Total size on disk, compressed or not.
  uint64_t stored_bytes() const;
  // A hash of the number, order, sizes, kinds and (of objects) versions of the files: equal for all
  // workers that see the same data.
  uint64_t fingerprint() const;

  // Shard `index` of `count` (index < count). Worker w of W workers with T threads takes the shards
  // w·T … w·T + T − 1 of W·T; all workers must use the same count. O(files), except that a
  // compressed file that a cut enters is decompressed once to learn its length (cached).
  Result<Shard> MakeShard(uint64_t index, uint64_t count) const;

  // Shard `index` of `count` within part `part` of the division (part < parts, index < count). The
  // shards of a part are exactly RangesOf(part, division) for any count, so that workers with
  // different numbers of threads leave no gap and no overlap.
  Result<Shard> MakeShardWithin(uint64_t part, const Division& division, uint64_t index,
                                uint64_t count) const;

  // The ranges of part `part`, none empty, in order. Those of all parts together are the whole,
  // once.
  Result<std::vector<ShardRange>> RangesOf(uint64_t part, const Division& division) const;

  // For each part that reads file `file` (index in files()): about how many of its stored bytes.
  // Unlike MakeShard, never decompresses. O(blocks that read it).
  std::map<uint64_t, uint64_t> BytesByPart(size_t file, const Division& division) const;

  // The same corpus, but reading copies of some files: index in files() → path of the copy.
  Corpus WithCopies(const std::map<size_t, std::filesystem::path>& copies) const;

 private:
  struct State;
  explicit Corpus(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace shoal::data
