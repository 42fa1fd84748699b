// Boost.JSON's functions for the shared library and the Python module: Debian's libboost_json.a,
// which the command links, is not compiled to be part of one. Defined here, they are not looked
// for there.
#include <boost/json/src.hpp>
