// The frame of a row operation as a client writes it: header, a call's argument, keys, rows.
//
// Written by the transports' clients, straight into a send buffer or shared memory.
#pragma once

#include "ps/frame.h"
#include "ps/transport.h"

namespace shoal::ps {

// Sets head->payload; returns the bytes of the whole frame.
size_t SizeRowFrame(const RowPart& rows, FrameHeader* head);
// Writes the frame to `to`, which lies on 8 bytes and has room. `checked`: with the payload's
// checksum.
void WriteRowFrame(FrameHeader head, const RowPart& rows, bool checked, char* to);

// True if the rows lie one after the other and need no padding, so that WriteRowFrameHead and then
// the rows from where they are make the frame.
bool IsContiguous(const RowPart& rows);
// Writes header and keys; returns where they end. The checksum covers the rows too.
char* WriteRowFrameHead(FrameHeader head, const RowPart& rows, char* to);

}  // namespace shoal::ps
