// The fields that a row has, and the sums over them, in a thread's scratch memory. For kernels.cc,
// whose `Pairs` lays them out and whose `Step` finds them again.
#pragma once

#include <cstdint>
#include <span>

#include "learn/ffm/kernels.h"

namespace shoal::learn::ffm {

// A view; the scratch must outlive it. A row's fields have places 0, 1, … in the order in which
// they come. No allocation once warm.
class RowFields {
 public:
  // Of a new row: S is zeros.
  RowFields(const Rule& rule, const Row& row, Scratch* scratch);
  // Of the row before.
  RowFields(const Rule& rule, Scratch* scratch);

  uint32_t count() const { return header_[0]; }
  uint32_t PlaceOf(uint32_t field) const { return places_[field] - 1; }
  // The field has only one feature, which has nobody to meet in it.
  bool IsAlone(uint32_t place) const { return features_[place] == 1; }
  // Where groups of fm::kLanes begin that hold factors towards the row's fields; rising.
  std::span<const uint32_t> groups() const { return {groups_, header_[1]}; }

  // S[f] by field, [stored].
  float* sums(uint32_t place) const { return floats_ + size_t{stored_} * (1 + place); }
  // S[g][f] of the field f for all g, where g's factors are; 0 in lanes of other fields.
  float* others(uint32_t place) const { return sums(count() + place); }
  // λ in the lanes of the row's fields, 0 in others.
  const float* decay() const { return floats_; }

  // Fills `others` from `sums`.
  void Transpose();
  // Before a feature's step: takes its own part out of what its field says to its own field.
  // at: its D. PutBack(place) is to follow.
  void TakeOut(uint32_t place, uint32_t feature, const float* at, float x);
  void PutBack(uint32_t place);

 private:
  void Bind(Scratch* scratch);
  void Number(const Row& row);
  void FindGroups();

  const Rule& rule_;
  const uint32_t stored_;
  const uint32_t k_;              // factors a field
  uint32_t* header_ = nullptr;    // [2]: places in use, groups
  uint32_t* places_ = nullptr;    // [fields]: place + 1, or 0
  uint32_t* fields_ = nullptr;    // [fields]: by place
  uint32_t* features_ = nullptr;  // [fields]: how many, by place
  uint32_t* groups_ = nullptr;    // [stored / kLanes]
  float* floats_ = nullptr;       // decay, then sums, then others
};

}  // namespace shoal::learn::ffm
