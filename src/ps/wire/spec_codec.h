// Table specs as bytes: in CreateTable frames and in checkpoints. And the id that frames carry.
#pragma once

#include <string>

#include "base/bytes.h"
#include "ps/types.h"

namespace shoal::ps {

void EncodeSpec(const TableSpec& spec, std::string* out);
// Reads and validates; the bytes may be hostile.
Status DecodeSpec(ByteReader* in, TableSpec* spec);

// The difference, for messages: "dim is 4, asked for 8"; empty if there is none.
std::string SpecDifference(const TableSpec& there, const TableSpec& asked);

// Of the name alone, so that all clients and servers agree without asking. Two names of one job
// with the same id are refused by CreateTable.
uint32_t TableIdOf(std::string_view name);

}  // namespace shoal::ps
