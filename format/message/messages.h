// The payload of every frame type but ChunkData (which is bytes of a file, as
// they are or as format/message/wire_compression.h has them).
// Byte layouts and the conversation they form: format/FORMAT.md.
//
// Each message has EncodeTo(), which appends, and DecodeFrom(), which reads
// exactly one whole payload: it bounds every length and count by
// format/limits.h before believing it, refuses trailing bytes with Corruption
// and leaves *this unspecified on error. Nothing here allocates more than the
// payload's size times a small constant.
//
// The sender sees to the limits of keys, names and counts before it encodes;
// only texts for a person (message, where, notes, reason) are cut to fit.
#pragma once

#include "format/message/messages_any.h"
#include "format/message/messages_control.h"
#include "format/message/messages_lane.h"
