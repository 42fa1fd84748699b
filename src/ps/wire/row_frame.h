// The frame of a row operation as a client writes it: header, a call's argument, keys, rows.
//
// Written by the transports' clients, straight into a send buffer or shared memory.
#pragma once

#include "ps/transport/transport.h"
#include "ps/wire/frame.h"

namespace shoal::ps {

// Sets head->payload; returns the bytes of the whole frame.
size_t SizeRowFrame(const RowChunk& rows, FrameHeader* head);
// Writes the frame to `to`, which lies on 8 bytes and has room. `checked`: with the payload's
// checksum.
void WriteRowFrame(FrameHeader head, const RowChunk& rows, bool checked, char* to);

// True if the rows lie one after the other and need no padding, so that WriteRowFrameHead and then
// the rows from where they are make the frame.
bool IsContiguous(const RowChunk& rows);
// Writes header and keys; returns where they end. The checksum covers the rows too.
char* WriteRowFrameHead(FrameHeader head, const RowChunk& rows, char* to);

}  // namespace shoal::ps
