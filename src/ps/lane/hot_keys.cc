#include "ps/lane/hot_keys.h"

#include <algorithm>

namespace shoal::ps {

void HotKeys::Count(uint32_t table, Key key) {
  ++samples_;
  Entry* least = &entries_[0];
  for (Entry& entry : entries_) {
    if (entry.key == key && entry.table == table && entry.count != 0) {
      ++entry.count;
      return;
    }
    if (entry.count < least->count) least = &entry;
  }
  *least = {table, key, least->count + 1, least->count};
}

std::vector<HotKeys::Entry> HotKeys::Top() const {
  std::vector<Entry> top;
  for (const Entry& entry : entries_) {
    if (entry.count > entry.error) top.push_back(entry);
  }
  std::sort(top.begin(), top.end(),
            [](const Entry& a, const Entry& b) { return a.count - a.error > b.count - b.error; });
  return top;
}

}  // namespace shoal::ps
