// sstferry inspect: a journal byte by byte, or what an SST file says of itself.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <nlohmann/json.hpp>

#include "format/byte_source.h"
#include "format/printable.h"
#include "format/record/annotate.h"
#include "format/record/journal.h"
#include "format/sst/sst_reader.h"
#include "tools/sstferry/command/run.h"
#include "tools/sstferry/options/command_arguments.h"
#include "tools/sstferry/output/console.h"

namespace sstferry {
namespace {

using nlohmann::ordered_json;
using rocksdb::Slice;
using rocksdb::Status;

// A journal is read whole; a million chunks make about 300 MB.
constexpr uint64_t kMaxJournalBytes = 1ull << 30;

// A file opened for reading. Read() is safe from any thread.
class FileSource : public ByteSource {
 public:
  ~FileSource() override {
    if (fd_ >= 0) {
      close(fd_);
    }
  }

  [[nodiscard]] Status Open(const std::string& path) {
    path_ = path;
    fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info {};
    if (fd_ < 0 || fstat(fd_, &info) != 0) {
      return MakeStatus(EndState::kInternal,
                        path + ": open: " + std::strerror(errno));
    }
    if (!S_ISREG(info.st_mode)) {
      return MakeStatus(EndState::kRefused,
                        path + ": expected a regular file");
    }
    size_ = static_cast<uint64_t>(info.st_size);
    return Status::OK();
  }

  [[nodiscard]] Status Read(uint64_t offset, size_t n, std::string* scratch,
                            Slice* out) const override {
    scratch->resize(n);
    size_t done = 0;
    while (done < n) {
      const ssize_t got = pread(fd_, scratch->data() + done, n - done,
                                static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) {
        continue;
      }
      if (got <= 0) {
        return MakeStatus(EndState::kInternal,
                          path_ + ": read at " +
                              std::to_string(offset + done) + ": " +
                              (got < 0 ? std::strerror(errno)
                                       : "the file became shorter"));
      }
      done += static_cast<size_t>(got);
    }
    *out = Slice(*scratch);
    return Status::OK();
  }

  uint64_t size() const override { return size_; }

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

struct Inspection {
  std::string kind;  // "journal" or "sst"
  std::string text;
  ordered_json details = ordered_json::object();
};

Status InspectJournal(const FileSource& file, Inspection* out) {
  out->kind = "journal";
  if (file.size() > kMaxJournalBytes) {
    return MakeStatus(EndState::kRefused,
                      "journal: expected at most " +
                          std::to_string(kMaxJournalBytes) +
                          " bytes, found " + std::to_string(file.size()));
  }
  std::string scratch;
  Slice bytes;
  const Status status = file.Read(0, file.size(), &scratch, &bytes);
  return status.ok() ? AnnotateJournal(bytes, &out->text) : status;
}

Status InspectSst(const FileSource& file, Inspection* out) {
  out->kind = "sst";
  SstReader reader;
  Status status = reader.Open(&file);
  if (!status.ok()) {
    return status;
  }
  ordered_json& properties = out->details["properties"];
  properties = ordered_json::object();
  for (const auto& [name, value] : reader.properties().all) {
    const std::string shown = DescribeSstProperty(name, value);
    properties[name] = shown;
    out->text += name + ": " + Printable(shown) + "\n";
  }
  std::string first;
  std::string last;
  if (reader.properties().num_entries > 0 &&
      reader.properties().num_data_blocks > 0) {
    status = reader.ReadBoundKeys(&first, &last);
    if (!status.ok()) {
      return status;
    }
    const auto user_key = [](const std::string& internal) {
      return KeyToText(
          Slice(internal.data(), internal.size() - kSstKeyTrailerBytes));
    };
    out->details["smallest"] = user_key(first);
    out->details["largest"] = user_key(last);
    out->text += "smallest key: " + user_key(first) + "\n";
    out->text += "largest key: " + user_key(last) + "\n";
  }
  return Status::OK();
}

Status Inspect(const std::string& path, Inspection* out) {
  FileSource file;
  Status status = file.Open(path);
  if (!status.ok()) {
    return status;
  }
  std::string scratch;
  Slice head;
  status = file.Read(0, std::min<uint64_t>(file.size(), kJournalMagicBytes),
                     &scratch, &head);
  if (!status.ok()) {
    return status;
  }
  status = head == Slice(kJournalMagic, kJournalMagicBytes)
               ? InspectJournal(file, out)
               : InspectSst(file, out);
  return WithContext(status, EndState::kCorrupt, path);
}

std::string ToJson(const std::string& path, const Status& status,
                   const Inspection& inspection) {
  const EndState state = EndStateOf(status);
  ordered_json json;
  json["schema"] = 1;
  json["command"] = "inspect";
  json["status"] = EndStateName(state);
  json["exit_code"] = ExitCodeOf(state);
  json["error"] = nullptr;
  if (!status.ok()) {
    json["error"] = {{"message", MessageOf(status)}, {"where", path}};
  }
  json["file"] = path;
  json["kind"] = inspection.kind;
  json.update(inspection.details);
  if (inspection.kind == "journal") {
    json["lines"] = ordered_json::array();
    for (size_t begin = 0; begin < inspection.text.size();) {
      const size_t end =
          std::min(inspection.text.find('\n', begin), inspection.text.size());
      json["lines"].push_back(inspection.text.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace

int RunInspect(const std::vector<std::string>& arguments) {
  InspectArguments inspect;
  const Status usage = ParseInspect(arguments, &inspect);
  if (!usage.ok()) {
    return ReportUsage("inspect", usage);
  }
  Console console(inspect.common);
  Inspection inspection;
  const Status status = Inspect(inspect.file, &inspection);
  // Standard output holds all that could be read, also when the rest is bad.
  return FinishCommand("inspect", status, "",
                inspect.common.json
                    ? ToJson(inspect.file, status, inspection)
                    : inspection.text,
                &console);
}

}  // namespace sstferry
