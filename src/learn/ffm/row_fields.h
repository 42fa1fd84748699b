// The fields of a row and the sums over them, in a thread's scratch memory. Used by kernels.cc:
// `Pairs` fills them and `Step` reads them.
#pragma once

#include <cstdint>
#include <span>

#include "learn/ffm/kernels.h"

namespace shoal::learn::ffm {

// A view of the scratch memory, which must outlive it. The row's fields have indices 0, 1, … in
// order of appearance. Does not allocate once the scratch is large enough.
class RowFields {
 public:
  // Starts a new row: S is zero.
  RowFields(const Rule& rule, const Row& row, Scratch* scratch);
  // Refers to the previous row.
  RowFields(const Rule& rule, Scratch* scratch);

  uint32_t count() const { return header_[0]; }
  uint32_t PlaceOf(uint32_t field) const { return places_[field] - 1; }
  // True if the field has only one feature, so that no pair is inside of it.
  bool IsAlone(uint32_t place) const { return features_[place] == 1; }
  // Offsets of the groups of fm::kLanes with factors towards the row's fields; ascending.
  std::span<const uint32_t> groups() const { return {groups_, header_[1]}; }

  // S[f] by field, [stored].
  float* sums(uint32_t place) const { return floats_ + size_t{stored_} * (1 + place); }
  // S[g][f] of field f for all g, at the positions of g's factors; 0 in lanes of other fields.
  float* others(uint32_t place) const { return sums(count() + place); }
  // λ in the lanes of the row's fields, 0 in others.
  const float* decay() const { return floats_; }

  // Fills `others` from `sums`.
  void Transpose();
  // Before a feature's step: subtracts its own part from the sum of its field. `at`: its D. Call
  // PutBack(place) afterwards.
  void TakeOut(uint32_t place, uint32_t feature, const float* at, float x);
  void PutBack(uint32_t place);

 private:
  void Bind(Scratch* scratch);
  void Number(const Row& row);
  void FindGroups();

  const Rule& rule_;
  const uint32_t stored_;
  const uint32_t k_;              // factors a field
  uint32_t* header_ = nullptr;    // [2]: indices in use, groups
  uint32_t* places_ = nullptr;    // [fields]: index + 1, or 0
  uint32_t* fields_ = nullptr;    // [fields]: by place
  uint32_t* features_ = nullptr;  // [fields]: how many, by place
  uint32_t* groups_ = nullptr;    // [stored / kLanes]
  float* floats_ = nullptr;       // decay, then sums, then others
};

}  // namespace shoal::learn::ffm
