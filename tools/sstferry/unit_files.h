// Makes the files that run the jobs of a host file: systemd units, a cron file,
// or manifests for Kubernetes. Quotes each option of a job so that it stays one
// word of the command line.
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

// The text before and after the host file's path in OwnHeader().
inline constexpr char kWrittenFrom[] = "# Written by sstferry units from ";
inline constexpr char kWrittenEnd[] =
    ": change that file, and run it again.";

// Returns the first line of all files that are made from this host file. The
// line contains the path of the host file.
std::string OwnHeader(const HostFile& host);

// Makes the files for all jobs in `host`. `program` is the absolute path of
// sstferry.
//   InvalidArgument  files of this form cannot run one of the jobs. The message
//                    contains the job's line and column.
[[nodiscard]] rocksdb::Status MakeFiles(FileForm form, const HostFile& host,
                                        const std::string& program,
                                        std::vector<MadeFile>* files);

// Formats a word for an Exec line of a systemd unit. Adds quotes if they are
// needed.
std::string UnitWord(const std::string& word);

}  // namespace sstferry
