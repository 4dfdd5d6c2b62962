// Finds options in an OPTIONS file that sstferry does not know, because they
// are not in the table of known names (format/rocksdb/known.h). They come from
// a later RocksDB or a fork, and their effects are unknown.
//
// The operator gets a note about unknown options, but no command fails because
// of them. If code could either trust a record or read all data again, it reads
// all data.
//
// All functions may be called from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sstferry {

struct UnknownOption {
  std::string where;  // "the database", "column family 'users'"
  // The member of a struct is written as in "compression_opts.level".
  std::string name;
  std::string value;
};

struct UnknownOptions {
  // Number of different names in all sections. At most kMaxUnknownOptions.
  uint64_t count = 0;
  // The first unknown options, in the order of the file.
  std::vector<UnknownOption> first;
};

inline constexpr uint64_t kMaxUnknownOptions = 4096;
inline constexpr size_t kToldUnknownOptions = 5;

// Finds the unknown options in the text of an OPTIONS file. Skips lines that
// are not settings, because the file may be damaged. A name that several
// families have counts once.
UnknownOptions FindUnknownOptions(const std::string& options_text);

// Returns a sentence for the operator that has the names and values of unknown
// options. The sentence is printable and has at most kMaxNoteBytes bytes. If
// there are no unknown options, returns an empty string.
std::string UnknownOptionsNote(const UnknownOptions& unknown);

// If the text has unknown options, adds a sentence about them to *notes (see
// UnknownOptionsNote()).
void NoteUnknownOptions(const std::string& options_text,
                        std::vector<std::string>* notes);

}  // namespace sstferry
