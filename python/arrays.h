// Memory of Python objects that hold numbers: numpy arrays, everything with the buffer protocol,
// and tensors with DLPack (PyTorch, TensorFlow, JAX on the CPU). No copy is made of keys, deltas
// and out rows that lie in memory as the parameter server wants them.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace shoal::python {

// Memory of a Python object, held while this lives. Copies share it. Made and destroyed with the
// GIL; `data` may be used without.
struct Array {
  void* data = nullptr;
  char type = 0;            // 'f' float, 'i' signed, 'u' unsigned, '?' none of them
  std::string format = {};  // as the struct module writes it, if it came so
  int bits = 0;             // of an element
  bool writable = false;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements
  std::shared_ptr<void> owner;

  size_t size() const;
  bool contiguous() const;
};

// TypeError names `what` and the type that it got; ValueError for memory of another device.
Array View(const pybind11::object& object, const std::string& what);

// n keys: any shape, contiguous; int64 and uint64 as they are, int32 and uint32 widened into
// *widened, which must outlive the span. ValueError for negative keys.
std::span<const uint64_t> Keys(const Array& array, std::vector<uint64_t>* widened);
// Rows of floats: contiguous float32 of n * dim elements, flat or with rows as the last axes ([n,
// dim], [batch, n, dim]). ValueError says what it got.
std::span<const float> Values(const Array& array, const std::string& what, size_t n, size_t dim);
std::span<float> WritableValues(const Array& array, const std::string& what, size_t n, size_t dim);

}  // namespace shoal::python
