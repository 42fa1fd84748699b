// Arguments that Python hands over by name, in a dict.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <limits>
#include <string>
#include <type_traits>

namespace shoal::python {

template <typename T>
std::string Expected() {
  if constexpr (std::is_same_v<T, bool>) return "True or False";
  if constexpr (std::is_integral_v<T>) {
    return "a whole number from " + std::to_string(std::numeric_limits<T>::min()) + " to " +
           std::to_string(std::numeric_limits<T>::max());
  }
  if constexpr (std::is_floating_point_v<T>) return "a number";
  if constexpr (std::is_same_v<T, std::string>) return "a str of valid Unicode";
  return "a list of str";
}

// ValueError for a number out of T's bounds, TypeError for what is none; both name the argument.
template <typename T>
T Argument(const std::string& name, const pybind11::handle& value) {
  try {
    return value.cast<T>();
  } catch (const pybind11::cast_error&) {
  }
  const bool number = std::is_integral_v<T> && pybind11::isinstance<pybind11::int_>(value);
  // The value is not shown: it may be a secret.
  const auto type = pybind11::type::of(pybind11::reinterpret_borrow<pybind11::object>(value));
  const std::string got = number ? std::string(pybind11::str(value))
                                 : std::string(pybind11::str(type.attr("__name__")));
  const std::string text = name + ": got " + got + ", expected " + Expected<T>();
  if (number) throw pybind11::value_error(text);
  throw pybind11::type_error(text);
}

template <typename T>
T Field(const pybind11::dict& from, const char* name) {
  return Argument<T>(name, pybind11::object(from[name]));
}

}  // namespace shoal::python
