// The files of the page, from web/dist, as they are in the program.
#pragma once

#include <span>
#include <string_view>

namespace shoal::api {

struct EmbeddedFile {
  std::string_view path;  // "assets/index-1a2b3c.js"
  std::string_view bytes;
};

std::span<const EmbeddedFile> EmbeddedFiles();

}  // namespace shoal::api
