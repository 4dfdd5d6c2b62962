// Dumps journals and frames: one line per field with its offset, its bytes and
// their meaning. Tests pin the formats with it.
//
//   00000008  30000000                          payload_bytes 48
//
// Offsets and bytes are hex; at most kAnnotatedBytes bytes of a field are
// shown, then "..". Keys and texts are shown in quotes if they are printable
// ASCII, else as 0x and hex digits.
#pragma once

#include <cstddef>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

inline constexpr size_t kAnnotatedBytes = 16;

// Appends the dump of a complete journal. A torn tail is one line of the dump,
// and the status is OK. Corruption: the dump ends before the damage.
[[nodiscard]] rocksdb::Status AnnotateJournal(const rocksdb::Slice& journal,
                                              std::string* out);

// Appends the dump of one frame: its header and complete payload. Returns the
// errors of DecodeFrameHeader, CheckFrameDigest and the message's Decode(),
// after dumping the readable part.
[[nodiscard]] rocksdb::Status AnnotateFrame(const rocksdb::Slice& frame,
                                            std::string* out);

// Appends the dump of a stream: its hello and its frames, with raw payloads.
// Returns the errors of DecodeStreamHello() and DecodeStreamFrame(), after
// dumping the readable part.
[[nodiscard]] rocksdb::Status AnnotateStream(const rocksdb::Slice& stream,
                                             std::string* out);

}  // namespace sstferry
