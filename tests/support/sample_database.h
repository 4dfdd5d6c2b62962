// A small database for pulls, and helpers that read what a pull made.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rocksdb/options.h"
#include "sstferry/target.h"
#include "sstferry/transport.h"

namespace sstferry {

struct SampleShape {
  size_t entries = 2000;
  size_t value_bytes = 1000;  // incompressible
  size_t files = 4;           // SST files in level 0, disjoint
  bool in_wal_only = false;   // nothing flushed
};

// Makes the database in a new directory. Requires every status to be OK.
void MakeSampleDatabase(const std::string& path, const SampleShape& shape = {});

// Returns all entries of the default family.
std::map<std::string, std::string> EntriesOf(const std::string& path);

// Returns `options`, with the method ingest if they set no method.
PullOptions AsChunks(PullOptions options);

// Returns options for a pull of small chunks from a directory. The snapshot
// does not outlive the pull.
PullOptions PullFrom(const std::string& source, const std::string& target);

// Returns such options for a pull of "db" from the server at `where`.
PullOptions PullFrom(const HostPort& where, const std::string& target);

// Runs a pull; the summary says how it ended.
Summary RunPull(const PullOptions& options);

// Returns the names in a directory, sorted.
std::vector<std::string> NamesOf(const std::string& directory);

// Read, or replace, the bytes of a file.
std::string BytesOf(const std::string& path);
void WriteBytes(const std::string& path, const std::string& bytes);

}  // namespace sstferry
