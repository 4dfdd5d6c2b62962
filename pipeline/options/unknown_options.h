// Options in an OPTIONS file that the table of known names lacks
// (format/rocksdb/known.h): a later RocksDB or a fork has them, and nobody here
// knows what they change. The operator is told; nothing is refused over them.
// Whoever can either believe or read everything again reads everything.
//
// All functions may be called from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sstferry {

struct UnknownOption {
  std::string where;  // "the database", "column family 'users'"
  std::string name;   // of a member: "compression_opts.level"
  std::string value;
};

struct UnknownOptions {
  // Names that differ, in all sections; at most kMaxUnknownOptions.
  uint64_t count = 0;
  // The first of them, in the order of the file.
  std::vector<UnknownOption> first;
};

inline constexpr uint64_t kMaxUnknownOptions = 4096;
inline constexpr size_t kToldUnknownOptions = 5;

// Finds them in the text of an OPTIONS file, which may be damaged: what is no
// setting is passed over. A name counts once, however many families have it.
UnknownOptions FindUnknownOptions(const std::string& options_text);

// Returns a sentence that names them with their values, for an operator, or ""
// if there are no unknown options. At most kMaxNoteBytes, all printable.
std::string UnknownOptionsNote(const UnknownOptions& unknown);

// Adds that sentence about the text, if there is one.
void NoteUnknownOptions(const std::string& options_text,
                        std::vector<std::string>* notes);

}  // namespace sstferry
