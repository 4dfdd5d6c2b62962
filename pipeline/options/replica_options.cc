#include "pipeline/options/replica_options.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "format/options_line.h"
#include "pipeline/options/options_file.h"
#include "rocksdb/env.h"
#include "rocksdb/utilities/options_util.h"

namespace sstferry {
namespace {

// RocksDB replaces an OPTIONS file by a newer one at any time.
constexpr int kTries = 5;

bool IsDirectoryOfHost(const std::string& name) {
  return name == "wal_dir" || name == "db_log_dir" || name == "db_paths" ||
         name == "cf_paths";
}

std::string ThreeNumbers(const RocksDbRelease& release) {
  return std::to_string(release.major) + "." + std::to_string(release.minor) +
         "." + std::to_string(release.patch);
}

// Returns the release that wrote the file, whomever it is for.
RocksDbRelease WriterOf(const std::string& options_text) {
  const size_t comment = options_text.find(kMadeForComment);
  const size_t end = options_text.find('\n', comment);
  return comment == 0 ? ReleaseOfOptions(options_text.substr(
                            std::min(end, options_text.size())))
                      : ReleaseOfOptions(options_text);
}

}  // namespace

std::string ReplicaOptionsText(const std::string& source_text,
                               const RocksDbRelease& application) {
  std::string text;
  const RocksDbRelease source = WriterOf(source_text);
  if (application.is_known() && application < source) {
    text = kMadeForComment + ThreeNumbers(application) + "\n";
  }
  for (size_t begin = 0; begin < source_text.size();) {
    const size_t end =
        std::min(source_text.find('\n', begin), source_text.size());
    std::string line = source_text.substr(begin, end - begin);
    begin = end + 1;
    std::string name;
    std::string value;
    if (line.starts_with(kMadeForComment)) {
      continue;  // of a replica that is a source
    }
    if (!SplitOptionLine(line, &name, &value)) {
      text += line + "\n";
      continue;
    }
    if (IsDirectoryOfHost(name)) {
      // An empty list of paths is none that RocksDB could parse.
      if (name == "db_paths" || name == "cf_paths") {
        continue;
      }
      line = "  " + name + "=";
    } else if (name == "rocksdb_version" && application > source) {
      line = "  rocksdb_version=" + ThreeNumbers(application);
    } else if (name == "format_version" && application.is_known() &&
               std::strtoull(value.c_str(), nullptr, 10) >
                   MaxFormatVersion(application)) {
      line = "  format_version=" + std::to_string(MaxFormatVersion(application));
    } else if (name == "checksum" && value == "kXXH3" &&
               application.is_known() && application < kReadsXxh3Checksums) {
      line = "  checksum=kCRC32c";
    }
    text += line + "\n";
  }
  return text;
}

RocksDbRelease ReleaseOfReplica(rocksdb::FileSystem* file_system,
                         const std::string& dir) {
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(
      std::shared_ptr<rocksdb::FileSystem>(file_system, [](auto*) {}));
  for (int i = 0; i < kTries; ++i) {
    std::string name;
    std::string text;
    uint64_t bytes = 0;
    rocksdb::Status status =
        rocksdb::GetLatestOptionsFileName(dir, env.get(), &name);
    if (status.IsNotFound() || status.IsPathNotFound()) {
      break;
    }
    if (status.ok()) status = env->GetFileSize(dir + "/" + name, &bytes);
    if (status.ok() && bytes > kMaxOptionsTextBytes) {
      break;
    }
    if (status.ok()) {
      status = rocksdb::ReadFileToString(env.get(), dir + "/" + name, &text);
    }
    if (status.ok()) {
      return ReleaseOfOptions(text);
    }
  }
  return RocksDbRelease();
}

}  // namespace sstferry
