// Explains bytes: one line per field with its offset, its bytes and what they
// mean. `sstferry inspect` prints a journal this way, tests pin formats by it.
//
//   00000008  30000000                          payload_bytes 48
//
// Offsets and bytes are hex; at most kAnnotatedBytes bytes of a field are
// shown, then "..". Keys and texts are shown as a person can read them:
// printable ASCII in quotes, all else as 0x and hex digits.
#pragma once

#include <cstddef>
#include <string>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

namespace sstferry {

inline constexpr size_t kAnnotatedBytes = 16;

// Appends the dump of a whole journal. A torn tail is a line of the dump, and
// OK. Corruption after dumping what stands before the damage.
[[nodiscard]] rocksdb::Status AnnotateJournal(const rocksdb::Slice& journal,
                                              std::string* out);

// Appends the dump of one frame, header and whole payload.
// Incomplete, Corruption, NotSupported as DecodeFrameHeader, CheckFrameDigest
// and the message's DecodeFrom tell, after dumping what could be read.
[[nodiscard]] rocksdb::Status AnnotateFrame(const rocksdb::Slice& frame,
                                            std::string* out);

}  // namespace sstferry
