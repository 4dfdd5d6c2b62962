// Payloads of all frame types except ChunkData, whose payload is file bytes
// (plain, or compressed as in format/wire_compression.h). Byte layouts and the
// conversation: format/FORMAT.md.
//
// Encode() appends a message, Decode() reads exactly one complete payload
// (format/codec.h). Decode() checks every length and count against
// format/limits.h before using it, reports trailing bytes as Corruption, and
// leaves the message unspecified on error. No function here allocates more than
// the payload's size times a small constant.
//
// The sender enforces the limits of keys, names and counts before it encodes.
// Only texts for display (message, where, notes, reason) are truncated.
#pragma once

#include "format/messages_any.h"
#include "format/messages_clone.h"
#include "format/messages_control.h"
#include "format/messages_delta.h"
#include "format/messages_follow.h"
#include "format/messages_lane.h"
