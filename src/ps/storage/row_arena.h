// Memory for rows: big chunks on huge-page borders, handed out in 64-byte-aligned pieces and given
// back all at once.
//
// One per lane, so that it needs no lock. Rows never move, so their addresses may be kept.
#pragma once

#include <cstddef>
#include <vector>

namespace shoal::ps {

class RowArena {
 public:
  RowArena() = default;
  RowArena(const RowArena&) = delete;
  RowArena& operator=(const RowArena&) = delete;
  ~RowArena();

  // Zeroed floats on a 64-byte border. Throws std::bad_alloc when the machine has no more; callers
  // catch it where the request came in. Amortised O(1), plus the kernel's page faults.
  float* Allocate(size_t floats);
  size_t bytes() const { return bytes_; }
  // Returns the whole pages of an allocation to the machine; the partial pages at its ends stay
  // mapped.
  void Discard(float* at, size_t floats);

 private:
  struct Chunk {
    void* at;
    size_t bytes;
  };
  char* Map(size_t bytes);

  std::vector<Chunk> chunks_;
  char* next_ = nullptr;
  size_t left_ = 0;
  size_t bytes_ = 0;  // mapped
};

}  // namespace shoal::ps
