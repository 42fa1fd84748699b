// Files of word vectors, in text and binary format: any bytes give vectors or an error, and never
// more memory than the file's size allows.
#include <cstdlib>
#include <string_view>

#include "model/vector_index.h"
#include "model/vectors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shoal::model;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto vectors = ParseVectors(bytes, "fuzz");
  if (!vectors.ok()) return 0;
  if (vectors->values.size() != vectors->words.size() * vectors->dim) std::abort();
  if (vectors->values.size() > size) std::abort();  // a value takes at least two bytes
  const VectorIndex index(std::move(vectors).value());
  if (index.rows() > 0) (void)index.Nearest(index.unit(0), 3, {});
  return 0;
}
