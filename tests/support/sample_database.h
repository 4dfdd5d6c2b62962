// A small database to pull, and what a pull left of it.
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

// Makes the directory; every status is required to be OK.
void MakeSampleDatabase(const std::string& path, const SampleShape& shape = {});

// All entries of the default family.
std::map<std::string, std::string> EntriesOf(const std::string& path);

// Returns the same options, with chunks if they leave the method open.
PullOptions AsChunks(PullOptions options);

// Returns options for a pull of small chunks from a directory, whose snapshot
// does not outlive it.
PullOptions PullFrom(const std::string& source, const std::string& target);

// The same from "db" of a server there.
PullOptions PullFrom(const HostPort& where, const std::string& target);

// Runs a pull; the summary says how it ended.
Summary RunPull(const PullOptions& options);

// Names in a directory, sorted.
std::vector<std::string> NamesOf(const std::string& directory);

// The bytes of a file, and its replacement.
std::string BytesOf(const std::string& path);
void WriteBytes(const std::string& path, const std::string& bytes);

}  // namespace sstferry
