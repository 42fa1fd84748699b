// What must hold of whatever puts a stream of bytes together: nothing depends on how the network
// cut it.
#pragma once

#include <string_view>
#include <vector>

namespace shoal::fuzz {

// What two readers of the same bytes made of them: at once, and in pieces of seven.
template <typename Piece>
struct Twice {
  std::vector<Piece> whole;
  std::vector<Piece> pieces;
  bool whole_fine = false;
  bool pieces_fine = true;
};

// `whole` and `pieces` are two fresh readers with Feed(bytes, &list of Piece).
template <typename Piece, typename Reader>
Twice<Piece> FeedTwice(std::string_view bytes, Reader whole, Reader pieces) {
  Twice<Piece> twice;
  twice.whole_fine = whole.Feed(bytes, &twice.whole).ok();
  for (size_t at = 0; at < bytes.size() && twice.pieces_fine; at += 7)
    twice.pieces_fine = pieces.Feed(bytes.substr(at, 7), &twice.pieces).ok();
  return twice;
}

}  // namespace shoal::fuzz
