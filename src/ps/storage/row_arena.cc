#include "ps/storage/row_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace shoal::ps {
namespace {

constexpr size_t kHugePage = 2u << 20;
constexpr size_t kChunk = 4u << 20;
constexpr size_t kLine = 64;

size_t RoundUp(size_t n, size_t to) { return (n + to - 1) / to * to; }

}  // namespace

RowArena::~RowArena() {
  for (const Chunk& chunk : chunks_) ::munmap(chunk.at, chunk.bytes);
}

// A mapping whose returned address lies on a huge-page border. What is never touched costs address
// space only; madvise is a wish, and its refusal is no error.
char* RowArena::Map(size_t bytes) {
  const size_t mapped = bytes + kHugePage;
  void* at = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  chunks_.push_back({at, mapped});
  bytes_ += bytes;
  char* aligned = reinterpret_cast<char*>(RoundUp(reinterpret_cast<size_t>(at), kHugePage));
  ::madvise(aligned, bytes, MADV_HUGEPAGE);
  return aligned;
}

float* RowArena::Allocate(size_t floats) {
  const size_t bytes = RoundUp(std::max(floats * sizeof(float), size_t{1}), kLine);
  if (bytes > left_) {
    const size_t chunk = std::max(RoundUp(bytes, kHugePage), kChunk);
    next_ = Map(chunk);
    left_ = chunk;
  }
  char* piece = next_;
  next_ += bytes;
  left_ -= bytes;
  return reinterpret_cast<float*>(piece);
}

void RowArena::Discard(float* at, size_t floats) {
  constexpr size_t kPage = 4096;
  const size_t begin = RoundUp(reinterpret_cast<size_t>(at), kPage);
  const size_t end = reinterpret_cast<size_t>(at + floats) / kPage * kPage;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace shoal::ps
