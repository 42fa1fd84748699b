#include "arrays.h"

#include <pybind11/numpy.h>

#include <bit>
#include <sstream>

namespace shoal::python {
namespace {

namespace py = pybind11;

// DLPack 0.x (https://dmlc.github.io/dlpack): the layout that a capsule "dltensor" points to.
struct DlDevice {
  int32_t type;
  int32_t id;
};
struct DlDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  DlDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DlManaged {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManaged*);
};
constexpr int32_t kCpu = 1;
constexpr int32_t kCudaHost = 3;

std::string TypeName(const py::object& object) {
  return py::str(py::type::of(object).attr("__name__"));
}

void RowMajor(Array* array) {
  array->strides.assign(array->shape.size(), 1);
  for (size_t i = array->shape.size(); i-- > 1;)
    array->strides[i - 1] = array->strides[i] * array->shape[i];
}

// Of one element, as the struct module writes it: a byte order, if any, and one letter. '?' for
// everything else: records, characters, complex numbers, several in one, the other byte order.
char TypeOfFormat(const std::string& format) {
  if (format.empty()) return 'u';  // bytes
  constexpr bool kLittle = std::endian::native == std::endian::little;
  const std::string own = kLittle ? "@=<" : "@=>!";
  const bool ordered = std::string("@=<>!").find(format[0]) != std::string::npos;
  if (format.size() != (ordered ? 2u : 1u)) return '?';
  if (ordered && own.find(format[0]) == std::string::npos) return '?';
  const char letter = format.back();
  if (std::string("fde").find(letter) != std::string::npos) return 'f';
  if (std::string("bhilqn").find(letter) != std::string::npos) return 'i';
  if (std::string("BHILQN").find(letter) != std::string::npos) return 'u';
  return '?';
}

Array FromBuffer(const py::object& object) {
  auto view = std::make_unique<Py_buffer>();
  // Writable if it can be: callers that write check `writable`.
  if (PyObject_GetBuffer(object.ptr(), view.get(), PyBUF_STRIDES | PyBUF_FORMAT | PyBUF_WRITABLE) !=
      0) {
    PyErr_Clear();
    if (PyObject_GetBuffer(object.ptr(), view.get(), PyBUF_STRIDES | PyBUF_FORMAT) != 0)
      throw py::error_already_set();
  }
  Array array;
  array.data = view->buf;
  array.writable = view->readonly == 0;
  array.format = view->format == nullptr ? "B" : view->format;
  array.type = TypeOfFormat(array.format);
  array.bits = static_cast<int>(view->itemsize * 8);
  for (int i = 0; i < view->ndim; ++i) {
    array.shape.push_back(view->shape[i]);
    const bool whole = view->itemsize > 0 && view->strides[i] % view->itemsize == 0;
    // Strides that are no multiples of the elements: nothing that lies in a row.
    array.strides.push_back(whole ? view->strides[i] / view->itemsize : 0);
    if (!whole) array.type = '?';
  }
  array.owner = std::shared_ptr<void>(view.release(), [](void* held) {
    const py::gil_scoped_acquire gil;
    PyBuffer_Release(static_cast<Py_buffer*>(held));
    delete static_cast<Py_buffer*>(held);
  });
  return array;
}

char TypeOfCode(uint8_t code) { return code == 0 ? 'i' : code == 1 ? 'u' : code == 2 ? 'f' : '?'; }

void TakeShape(const DlTensor& tensor, Array* array) {
  array->shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  RowMajor(array);
  if (tensor.strides != nullptr)
    array->strides.assign(tensor.strides, tensor.strides + tensor.ndim);
}

Array FromDlpack(const py::object& object, const std::string& what) {
  // A tensor that autograd watches gives its memory only without it.
  const bool watched =
      py::hasattr(object, "requires_grad") && py::bool_(object.attr("requires_grad"));
  const py::object source = watched ? object.attr("detach")() : object;
  if (py::hasattr(source, "__dlpack_device__")) {
    const auto device = source.attr("__dlpack_device__")().cast<py::tuple>();
    const auto type = device[0].cast<int32_t>();
    if (type != kCpu && type != kCudaHost) {
      throw py::value_error(what + ": its memory is on another device (DLPack type " +
                            std::to_string(type) + "); bring it to the CPU first, with .cpu()");
    }
  }
  const py::capsule capsule = source.attr("__dlpack__")();
  auto* const managed = static_cast<DlManaged*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  if (managed == nullptr) throw py::error_already_set();
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  Array array;
  array.owner = std::shared_ptr<void>(managed, [](void* held) {
    auto* const tensor = static_cast<DlManaged*>(held);
    const py::gil_scoped_acquire gil;
    if (tensor->deleter != nullptr) tensor->deleter(tensor);
  });
  const DlTensor& tensor = managed->tensor;
  array.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  array.type = tensor.dtype.lanes == 1 ? TypeOfCode(tensor.dtype.code) : '?';
  array.bits = tensor.dtype.bits;
  // TensorFlow's tensors are immutable, PyTorch's and numpy's are not.
  array.writable = TypeName(object) != "EagerTensor" && TypeName(object) != "ArrayImpl";
  TakeShape(tensor, &array);
  return array;
}

std::string Describe(const Array& array) {
  std::ostringstream text;
  if (array.type == '?') {
    text << "elements of " << array.bits / 8 << " bytes"
         << (array.format.empty() ? "" : " and format '" + array.format + "'");
    if (array.format.starts_with('>') || array.format.starts_with('!')) text << " (big-endian)";
    text << ", of shape (";
  } else {
    text << (array.type == 'f'   ? "float"
             : array.type == 'i' ? "int"
                                 : "uint")
         << array.bits << " of shape (";
  }
  for (size_t i = 0; i < array.shape.size(); ++i) text << (i == 0 ? "" : ", ") << array.shape[i];
  text << ")" << (array.contiguous() ? "" : ", not contiguous");
  return text.str();
}

template <typename T>
void Widen(const Array& array, std::vector<uint64_t>* widened) {
  const T* const from = static_cast<const T*>(array.data);
  widened->resize(array.size());
  for (size_t i = 0; i < widened->size(); ++i) {
    if (from[i] < 0) throw py::value_error("keys: " + std::to_string(from[i]) + " is negative");
    (*widened)[i] = static_cast<uint64_t>(from[i]);
  }
}

// Whether the array's last axes are one row: [n, dim], [batch, n, dim], [n, a, b] with a * b = dim;
// or all is flat. [dim, n] is not: its rows lie across.
bool HoldsRows(const Array& array, size_t dim) {
  if (array.shape.size() <= 1 || array.size() == 0) return true;
  size_t row = 1;
  for (size_t i = array.shape.size(); i > 0 && row < dim; --i)
    row *= static_cast<size_t>(array.shape[i - 1]);
  return row == dim;
}

}  // namespace

size_t Array::size() const {
  int64_t size = 1;
  for (const int64_t extent : shape) size *= extent;
  return static_cast<size_t>(size);
}

bool Array::contiguous() const {
  if (size() == 0) return true;
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

Array View(const py::object& object, const std::string& what) {
  if (PyObject_CheckBuffer(object.ptr())) return FromBuffer(object);
  if (py::hasattr(object, "__dlpack__")) return FromDlpack(object, what);
  throw py::type_error(what + ": got " + TypeName(object) +
                       ", expected a numpy array, a tensor, or anything with the buffer protocol "
                       "or DLPack");
}

std::span<const uint64_t> Keys(const Array& array, std::vector<uint64_t>* widened) {
  const bool whole = array.type == 'i' || array.type == 'u';
  if (!whole || (array.bits != 64 && array.bits != 32) || !array.contiguous()) {
    throw py::value_error("keys: got " + Describe(array) +
                          ", expected contiguous int64, uint64, int32 or uint32 in this machine's "
                          "byte order");
  }
  if (array.bits == 32) {
    if (array.type == 'i') Widen<int32_t>(array, widened);
    if (array.type == 'u') Widen<uint32_t>(array, widened);
    return *widened;
  }
  const auto* const keys = static_cast<const uint64_t*>(array.data);
  if (array.type == 'i') {
    uint64_t sign = 0;
    for (size_t i = 0; i < array.size(); ++i) sign |= keys[i];
    if (sign >> 63 != 0) throw py::value_error("keys: one of them is negative");
  }
  return {keys, array.size()};
}

std::span<const float> Values(const Array& array, const std::string& what, size_t n, size_t dim) {
  if (array.type != 'f' || array.bits != 32 || !array.contiguous() || array.size() != n * dim ||
      !HoldsRows(array, dim)) {
    throw py::value_error(what + ": got " + Describe(array) + ", expected contiguous float32, " +
                          std::to_string(n) + " rows of " + std::to_string(dim) +
                          ", in this machine's byte order");
  }
  return {static_cast<const float*>(array.data), array.size()};
}

std::span<float> WritableValues(const Array& array, const std::string& what, size_t n, size_t dim) {
  const std::span<const float> values = Values(array, what, n, dim);
  if (!array.writable) throw py::value_error(what + ": its memory is read-only");
  return {const_cast<float*>(values.data()), values.size()};
}

}  // namespace shoal::python
