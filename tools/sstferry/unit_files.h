// Makes the files that run the jobs of a host: systemd units, a cron file, or
// manifests for Kubernetes. Quoting keeps each option value of the host file
// one word of a command line.
#pragma once

#include <string>
#include <vector>

#include "rocksdb/status.h"
#include "tools/sstferry/host_file.h"

namespace sstferry {

struct MadeFile {
  std::string name;
  std::string text;  // begins with OwnHeader()
};

enum class FileForm { kUnits, kCron, kKubernetes };

// The text around the host file's path in OwnHeader().
inline constexpr char kWrittenFrom[] = "# Written by sstferry units from ";
inline constexpr char kWrittenEnd[] =
    ": change that file, and run it again.";

// Returns the first line of each file that is made from this host's file.
std::string OwnHeader(const HostFile& host);

// Makes the files. `program`: the absolute path of sstferry.
//   InvalidArgument  this form cannot run a job; as in arguments.h, with the
//                    job's line and column
[[nodiscard]] rocksdb::Status MakeFiles(FileForm form, const HostFile& host,
                                        const std::string& program,
                                        std::vector<MadeFile>* files);

// Formats a word for a line of a unit, in quotes if it needs them.
std::string UnitWord(const std::string& word);

}  // namespace sstferry
