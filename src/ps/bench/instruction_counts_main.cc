// The hot paths of a row operation, run a stated number of times and nothing else, so that
// instructions can be counted: `ps_counts PATH TIMES`, PATH as below.
//
// Run under callgrind by bench/instructions.py (script/bench instructions), which counts what is
// below Measured. One thread, no system calls, no clock: the count is the same anywhere that has
// the same instruction sets.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "ps/lane/lane.h"
#include "ps/transport/shared_ring.h"
#include "ps/wire/row_frame.h"
#include "ps/wire/spec_codec.h"

namespace shoal::ps {
namespace {

constexpr uint32_t kDim = 100;
constexpr size_t kRows = 250;  // a part of 1,000
constexpr uint64_t kTableRows = 20'000;

template <typename T>
T Value(Result<T> result) {
  if (!result.ok()) std::exit(1);
  return std::move(result).value();
}

// A client's half of a frame, a ring, and a server's half.
class Path {
 public:
  Path(KeySpace space, uint32_t dim, size_t rows) : dim_(dim), keys_(rows) {
    spec_.name = "t";
    spec_.key_space = space;
    spec_.rows = kTableRows;
    spec_.dim = dim;
    Lane::Guard guard(lane_);
    if (!lane_.CreateTable(spec_).ok()) std::exit(1);
    Hello hello;
    hello.session = 1;
    session_ = Value(lane_.Join(hello, nullptr));
    std::mt19937_64 random(3);
    for (Key& key : keys_) key = random() % kTableRows;
    deltas_.assign(rows * dim, 1e-3f);
    answer_.resize(rows * dim * sizeof(float));
  }

  void Once(FrameType type) {
    RowChunk part;
    part.keys = keys_.data();
    part.n = keys_.size();
    part.dim = dim_;
    part.deltas = ConstRows(deltas_.data(), dim_);
    FrameHeader head;
    head.type = type;
    head.table = TableIdOf(spec_.name);
    head.id = ++seq_;
    head.rows = static_cast<uint32_t>(keys_.size());
    head.dim = dim_;
    head.key_bytes = spec_.key_space == KeySpace::kDense ? 4 : 8;
    const size_t whole = SizeRowFrame(part, &head);
    if (writer_.Room(whole) < whole) std::exit(1);
    WriteRowFrame(head, part, false, writer_.At());
    writer_.Advance(whole);
    writer_.Publish();
    Serve();
  }

 private:
  void Serve() {
    reader_.CheckForData();
    FrameHeader head;
    const std::string_view have = reader_.view();
    if (!ReadHeader(have.substr(0, sizeof head), kMaxPayload, &head).ok()) std::exit(1);
    const std::string_view payload = have.substr(sizeof head, head.payload);
    front_.assign(payload.substr(0, KeyAreaOf(head)));
    RowSource source;
    source.front = front_;
    source.values = payload.data() + front_.size();
    source.out = answer_.data();
    bool order = false;
    Lane::Guard guard(lane_);
    if (!lane_.RowOperation(session_, head, source, &order).ok()) std::exit(1);
    reader_.Consume(sizeof head + head.payload);
    reader_.Release();
  }

  const uint32_t dim_;
  TableSpec spec_;
  const Partition partition_{64, {1}};
  Lane lane_{&partition_, Owner{0, 0}, nullptr};
  const SharedRings rings_ = Value(SharedRings::Create());
  RingWriter writer_{rings_, SharedRings::kToServer};
  RingReader reader_{rings_, SharedRings::kToServer};
  Session* session_ = nullptr;
  uint64_t seq_ = 0;
  std::vector<Key> keys_;
  std::vector<float> deltas_;
  std::string front_, answer_;
};

// By its name callgrind knows when to count: libraries that calibrate clocks when they are loaded
// or first used take another number of instructions every time.
__attribute__((noinline)) void Measured(Path* path, FrameType type, long times) {
  for (long i = 0; i < times; ++i) path->Once(type);
}

int Main(int argc, char** argv) {
  const std::string what = argc == 3 ? argv[1] : "";
  const long times = argc == 3 ? std::atol(argv[2]) : 0;
  const bool small = what == "push-4kb" || what == "pull-4kb";
  const bool dense = small || what == "push-dense" || what == "pull-dense";
  const bool push = what.starts_with("push");
  if (times < 1 || (!dense && what != "push-sparse" && what != "pull-sparse")) {
    std::fputs("usage: ps_counts {push,pull}-{4kb,dense,sparse} TIMES\n", stderr);
    return 2;
  }
  Path path(dense ? KeySpace::kDense : KeySpace::kSparse, small ? 1024 : kDim, small ? 1 : kRows);
  path.Once(FrameType::kPush);  // the rows are there
  path.Once(FrameType::kPull);
  Measured(&path, push ? FrameType::kPush : FrameType::kPull, times);
  return 0;
}

}  // namespace
}  // namespace shoal::ps

int main(int argc, char** argv) { return shoal::ps::Main(argc, argv); }
