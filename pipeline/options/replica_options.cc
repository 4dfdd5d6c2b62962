#include "pipeline/options/replica_options.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "format/options_line.h"
#include "format/rocksdb/known.h"
#include "pipeline/base/file_source.h"
#include "pipeline/options/option_rules.h"
#include "pipeline/options/options_file.h"
#include "rocksdb/utilities/options_util.h"

namespace sstferry {
namespace {

// Number of attempts to read OPTIONS. RocksDB may replace the file at any time.
constexpr int kTries = 5;

// Returns the release that wrote the file. The file may have been made for the
// application of another release.
RocksDbRelease WriterOf(const std::string& options_text) {
  const bool has_comment = options_text.starts_with(kMadeForComment);
  return ReleaseOfOptions(
      has_comment ? options_text.substr(std::min(options_text.find('\n'),
                                                 options_text.size()))
                  : options_text);
}

// Returns a value such as "{a=1;b=2;}" without members that the application
// does not know.
std::string MembersFor(const std::string& value,
                       const RocksDbRelease& application) {
  std::vector<NamedValue> members;
  if (!SplitMembers(value, &members).ok()) {
    return value;
  }
  std::string known = "{";
  for (const NamedValue& member : members) {
    if (FirstWithOptionMember(member.name) <= application) {
      known += member.name + "=" + member.value + ";";
    }
  }
  return known + "}";
}

// Returns the line for an application that is older than the source's RocksDB.
// Returns an empty string if the application does not know the name or the
// value.
std::string LineForOlder(const std::string& line, const std::string& name,
                         const std::string& value,
                         const RocksDbRelease& application) {
  if (FirstWithOption(name) > application ||
      FirstWithOptionValue(value) > application) {
    return "";
  }
  const bool has_members = name.ends_with("compression_opts") ||
                           name.starts_with("compaction_options_");
  return has_members
             ? "  " + name + "=" + MembersFor(value, application) + "\n"
             : line + "\n";
}

// Returns the line in the form for a replica's OPTIONS file, which
// `application` will read. Returns an empty string if the file must not have
// this line.
std::string ReplicaLine(const std::string& line, const RocksDbRelease& source,
                        const RocksDbRelease& application) {
  std::string name;
  std::string value;
  if (!SplitOptionLine(line, &name, &value)) {
    return line + "\n";
  }
  if (name == "wal_dir" || name == "db_log_dir") {
    return "  " + name + "=\n";
  }
  // RocksDB cannot parse an empty list of paths.
  if (name == "db_paths" || name == "cf_paths") {
    return "";
  }
  if (!application.is_known()) {
    return line + "\n";
  }
  if (name == "rocksdb_version" && application > source) {
    return "  rocksdb_version=" + ReleaseNumbers(application) + "\n";
  }
  if (name == "format_version" &&
      std::strtoull(value.c_str(), nullptr, 10) >
          MaxFormatVersion(application)) {
    return "  format_version=" + std::to_string(MaxFormatVersion(application)) +
           "\n";
  }
  if (name == "checksum" && value == "kXXH3" &&
      application < kReadsXxh3Checksums) {
    return "  checksum=kCRC32c\n";
  }
  return application < source ? LineForOlder(line, name, value, application)
                              : line + "\n";
}

}  // namespace

std::string ReplicaOptionsText(const std::string& source_text,
                               const RocksDbRelease& application,
                               const std::vector<std::string>& families) {
  const RocksDbRelease source = WriterOf(source_text);
  bool is_kept = true;
  std::string text;
  if (application.is_known() && application < source) {
    text = kMadeForComment + ReleaseNumbers(application) + "\n";
  }
  ForEachLine(source_text, [&](const std::string& line) {
    const std::optional<std::string> family = FamilyOfSection(line);
    if (family.has_value()) {
      is_kept = family->empty() || families.empty() ||
                std::find(families.begin(), families.end(), *family) !=
                    families.end();
    }
    // If the source is itself a replica, its text may have its own comment of
    // this kind. That comment is not copied.
    if (is_kept && !line.starts_with(kMadeForComment)) {
      text += ReplicaLine(line, source, application);
    }
  });
  return text;
}

rocksdb::Status ReadNewestOptions(rocksdb::Env* env, const std::string& dir,
                                  std::string* text) {
  std::string name;
  RETURN_IF_ERROR(rocksdb::GetLatestOptionsFileName(dir, env, &name));
  return ReadForeignFile(env->GetFileSystem().get(), dir + "/" + name,
                         kMaxOptionsTextBytes, text);
}

RocksDbRelease ReleaseOfReplica(
    std::shared_ptr<rocksdb::FileSystem> file_system, const std::string& dir) {
  const std::unique_ptr<rocksdb::Env> env =
      rocksdb::NewCompositeEnv(std::move(file_system));
  std::string text;
  rocksdb::Status status;
  for (int i = 0; i < kTries; ++i) {
    status = ReadNewestOptions(env.get(), dir, &text);
    if (status.ok()) {
      return ReleaseOfOptions(text);
    }
  }
  return RocksDbRelease();
}

}  // namespace sstferry
