#include "pipeline/archive/repair.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "format/end_state.h"
#include "pipeline/archive/push.h"
#include "pipeline/archive/seal.h"
#include "sstferry/descriptor.h"
#include "sstferry/options.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

bool IsNoDonor(const Status& status) {
  const EndState state = EndStateOf(status);
  return state == EndState::kCorrupt || state == EndState::kRefused ||
         state == EndState::kSourceError;
}

// Reads the bytes of a file of a set, decrypted if the set is sealed. Borrows
// all arguments.
class ArchivedBytes : public ByteSource {
 public:
  ArchivedBytes(const Archive& archive, const ArchiveSet& set,
                const ArchivedFile& file)
      : archive_(archive), set_(set), file_(file) {}

  uint64_t size() const override { return file_.file.bytes; }
  [[nodiscard]] Status Read(uint64_t offset, size_t n, std::string* scratch,
                            Slice* out) const override {
    return RetryIfCorrupt([&] {
      scratch->clear();
      const StoreResult got = archive_.ReadFile(
          set_, file_, offset, n, [scratch](const Slice& piece) {
            scratch->append(piece.data(), piece.size());
            return Status::OK();
          });
      *out = Slice(*scratch);
      return got.status;
    });
  }

 private:
  const Archive& archive_;
  const ArchiveSet& set_;
  const ArchivedFile& file_;
};

// Reads the first `bytes` of a file, which may grow.
class FileBytes : public ByteSource {
 public:
  FileBytes(Descriptor file, std::string name, uint64_t bytes)
      : file_(std::move(file)), name_(std::move(name)), bytes_(bytes) {}
  uint64_t size() const override { return bytes_; }
  [[nodiscard]] Status Read(uint64_t offset, size_t n, std::string* scratch,
                            Slice* out) const override {
    scratch->resize(n);
    for (size_t at = 0; at < n;) {
      const ssize_t got = pread(file_.get(), scratch->data() + at, n - at,
                                static_cast<off_t>(offset + at));
      if (got < 0 && errno == EINTR) {
        continue;
      }
      if (got <= 0) {
        return MakeStatus(EndState::kSourceError,
                          name_ + ": cannot be read or is truncated");
      }
      at += static_cast<size_t>(got);
    }
    *out = Slice(*scratch);
    return Status::OK();
  }

 private:
  const Descriptor file_;
  const std::string name_;
  const uint64_t bytes_;
};

class DirectoryDonor : public FileDonor {
 public:
  explicit DirectoryDonor(std::string directory)
      : directory_(std::move(directory)) {}

  [[nodiscard]] Status Offer(
      const CloneFile& file, uint64_t unit_bytes,
      const std::function<bool(const Open& open)>& take) override {
    take([&](std::unique_ptr<SetFile>* opened) {
      std::unique_ptr<ByteSource> bytes;
      RETURN_IF_ERROR(OpenNamed(CloneFileName(file), file.bytes, &bytes));
      *opened = std::make_unique<DigestedFile>(std::move(bytes), file,
                                               unit_bytes);
      return Status::OK();
    });
    return Status::OK();
  }

 private:
  [[nodiscard]] Status OpenNamed(const std::string& name, uint64_t bytes,
                                 std::unique_ptr<ByteSource>* opened) const {
    // Follows symbolic links in the path of the directory, because the operator
    // chose this path. Follows no links below the directory.
    const std::unique_ptr<char, decltype(&std::free)> real(
        realpath(directory_.c_str(), nullptr), &std::free);
    const Descriptor directory =
        real == nullptr ? Descriptor() : OpenDirectory(real.get());
    const std::string what = directory_ + "/" + name;
    Descriptor found;
    if (directory.is_open()) {
      found = OpenIn(directory.get(), name, O_RDONLY);
    }
    struct stat info = {};
    if (!found.is_open() || fstat(found.get(), &info) != 0 ||
        !S_ISREG(info.st_mode) ||
        static_cast<uint64_t>(info.st_size) < bytes) {
      return MakeStatus(EndState::kSourceError,
                        what + ": expected a file of " +
                            std::to_string(bytes) +
                            " bytes or more, found none");
    }
    *opened = std::make_unique<FileBytes>(std::move(found), what, bytes);
    return Status::OK();
  }

  const std::string directory_;
};

// Returns true if `a` and `b` may be the same file. Their sizes must be equal,
// and either their identities, or their kinds and numbers.
bool MayBeSame(const CloneFile& a, const CloneFile& b) {
  return a.bytes == b.bytes &&
         ((a.identity != Digest128{} && a.identity == b.identity) ||
          (a.kind == b.kind && a.number == b.number));
}

class ArchiveDonor : public FileDonor {
 public:
  explicit ArchiveDonor(const Archive& archive) : archive_(archive) {}

  [[nodiscard]] Status Offer(
      const CloneFile& file, uint64_t unit_bytes,
      const std::function<bool(const Open& open)>& take) override {
    RETURN_IF_ERROR(ReadSets());
    std::set<std::string> offered;
    for (const ArchiveSet& set : sets_) {
      for (const ArchivedFile& other : set.files) {
        const auto open = [&](std::unique_ptr<SetFile>* opened) {
          *opened = std::make_unique<DigestedFile>(
              std::make_unique<ArchivedBytes>(archive_, set, other), file,
              unit_bytes);
          return Status::OK();
        };
        if (MayBeSame(other.file, file) &&
            offered.insert(ArchiveKeyText(other.key)).second && take(open)) {
          return Status::OK();
        }
      }
    }
    return Status::OK();
  }

 private:
  [[nodiscard]] Status ReadSets() {
    if (is_read_) {
      return Status::OK();
    }
    std::vector<FoundSet> listed;
    RETURN_IF_ERROR(archive_.ListSets(&listed));
    for (auto found = listed.rbegin(); found != listed.rend(); ++found) {
      std::optional<ArchiveSet> set;
      const Status read = archive_.ReadSet(*found, &set);
      if (!read.ok() && !IsNoDonor(read)) {
        return read;
      }
      if (read.ok() && set.has_value() && archive_.CheckReadable(*set).ok()) {
        sets_.push_back(*std::move(set));
      }
    }
    is_read_ = true;
    return Status::OK();
  }

  const Archive& archive_;
  bool is_read_ = false;
  std::vector<ArchiveSet> sets_;  // the newest first
};

class SourceDonor : public FileDonor {
 public:
  explicit SourceDonor(SetSource* source) : source_(source) {}

  [[nodiscard]] Status Offer(
      const CloneFile& file, uint64_t,
      const std::function<bool(const Open& open)>& take) override {
    const std::vector<ArchivedFile>& files = source_->set().files;
    for (size_t i = 0; i < files.size(); ++i) {
      if (MayBeSame(files[i].file, file) &&
          take([this, i](std::unique_ptr<SetFile>* opened) {
            return source_->Open(i, opened);
          })) {
        return Status::OK();
      }
    }
    return Status::OK();
  }

 private:
  SetSource* const source_;
};

// Makes the damaged set the source of a push.
class DamagedSet : public SetSource {
 public:
  using OpenFile =
      std::function<Status(size_t file, std::unique_ptr<SetFile>* opened)>;
  DamagedSet(const ArchiveSet& damaged, OpenFile open)
      : set_(damaged), open_(std::move(open)) {
    set_.name = SetName();
    set_.seal = Sha256Digest();
    set_.key_id = SealKeyId();
    for (ArchivedFile& file : set_.files) {
      const CloneFile only = file.file;
      file = ArchivedFile();
      file.file = only;
    }
  }
  const ArchiveSet& set() const override { return set_; }
  [[nodiscard]] Status Open(size_t file,
                            std::unique_ptr<SetFile>* opened) override {
    return open_(file, opened);
  }

 private:
  ArchiveSet set_;
  const OpenFile open_;
};

class Repairer {
 public:
  Repairer(const Archive& archive, const RepairOptions& options,
           RepairSummary* summary)
      : archive_(archive),
        options_(options),
        summary_(summary),
        own_(archive) {}

  [[nodiscard]] Status Run();

 private:
  // Compares a file with the digests in the record of its set. If the file
  // cannot be read, returns the error and sets *same to false.
  [[nodiscard]] static Status Compare(SetFile* file, const ArchivedFile& known,
                                      bool* same);
  // Reads the objects of a set that this repair has not read before.
  [[nodiscard]] Status ReadObjects(const ArchiveSet& set);
  // Reads one object and compares it with its digests. Sets *problem, which is
  // empty if the object is right. Sets *fault only if the object exists, and
  // its bytes are wrong.
  [[nodiscard]] Status ReadObject(const ArchiveSet& set,
                                  const ArchivedFile& file,
                                  std::string* problem,
                                  std::string* fault) const;
  // Stores the keys of wrong objects as findings, which pushes and prunes read.
  [[nodiscard]] Status KeepFindings();
  // Opens the object of a file, or another file with the same bytes. Leaves
  // *opened null if no object has these bytes.
  [[nodiscard]] Status OpenSame(const ArchiveSet& set, size_t file,
                                std::unique_ptr<SetFile>* opened);
  [[nodiscard]] Status RepairSet(const ArchiveSet& set, RepairedSet* repaired);
  [[nodiscard]] Status CheckStopped() const {
    return options_.cancelled && options_.cancelled()
               ? MakeStatus(EndState::kCancelled, "repair: stopped on request")
               : Status::OK();
  }

  const Archive& archive_;
  const RepairOptions& options_;
  RepairSummary* const summary_;
  ArchiveDonor own_;
  std::mutex mu_;        // guards problems_ and the summary
  std::mutex donor_mu_;  // a donor serves one caller at a time
  // Maps the key of an object to its problem; an empty problem: the object is
  // good.
  std::map<std::string, std::string> problems_;
  std::map<std::string, std::string> wrong_;  // faults that are not stored yet
};

Status Repairer::Compare(SetFile* file, const ArchivedFile& known,
                         bool* same) {
  FileDigests digests;
  const Status read = ForEachPiece(
      file->size(), [&](uint64_t offset, uint64_t bytes) {
        return file->Digest(offset, bytes, &digests);
      });
  *same = read.ok() && digests.units == known.units;
  return read;
}

Status Repairer::ReadObject(const ArchiveSet& set, const ArchivedFile& file,
                            std::string* problem, std::string* fault) const {
  DigestedFile object(std::make_unique<ArchivedBytes>(archive_, set, file),
                      file.file, set.unit_bytes);
  bool same = false;
  const Status read = Compare(&object, file, &same);
  if (!read.ok() && !IsNoDonor(read)) {
    return read;
  }
  *problem = !read.ok() ? MessageOf(read)
             : same     ? ""
                    : archive_.store()->Describe(ArchiveKeyText(file.key)) +
                          ": " + kWrongBytes;
  *fault = EndStateOf(read) == EndState::kCorrupt ? *problem
           : read.ok() && !same                   ? kWrongBytes
                                                  : "";
  return Status::OK();
}

Status Repairer::ReadObjects(const ArchiveSet& set) {
  if (options_.progress != nullptr) {
    options_.progress->phase = "read";
    for (const ArchivedFile& file : set.files) {
      options_.progress->planned_bytes +=
          problems_.count(ArchiveKeyText(file.key)) == 0 ? file.file.bytes : 0;
    }
  }
  return ForEachInLanes(options_.lanes, set.files.size(), [&](size_t at) {
    const ArchivedFile& file = set.files[at];
    const std::string key = ArchiveKeyText(file.key);
    {
      const std::lock_guard<std::mutex> lock(mu_);
      if (problems_.count(key) != 0) {
        return Status::OK();
      }
    }
    std::string problem;
    std::string fault;
    RETURN_IF_ERROR(CheckStopped());
    RETURN_IF_ERROR(ReadObject(set, file, &problem, &fault));
    const std::lock_guard<std::mutex> lock(mu_);
    problems_[key] = problem;
    if (!fault.empty()) {
      wrong_[key] = fault;
    }
    summary_->read_bytes += file.file.bytes;
    if (options_.progress != nullptr) {
      options_.progress->done_bytes += file.file.bytes;
    }
    return Status::OK();
  });
}

// Adds the faults in wrong_ to the stored findings. If the findings cannot be
// read, changes nothing. This is safe: prunes delete nothing, and pushes reuse
// nothing, until a check of all objects stores new findings.
Status Repairer::KeepFindings() {
  if (wrong_.empty()) {
    return Status::OK();
  }
  uint64_t now = 0;
  RETURN_IF_ERROR(archive_.Now(&now));
  ArchiveChecked checked;
  const Status read = archive_.ReadChecked(&checked);
  if (EndStateOf(read) == EndState::kCorrupt) {
    return Status::OK();
  }
  RETURN_IF_ERROR(read);
  std::erase_if(checked.faults, [this](const FoundFault& fault) {
    return wrong_.count(fault.key) != 0;
  });
  for (const auto& [key, fault] : wrong_) {
    if (checked.faults.size() < kMaxFoundFaults) {
      checked.faults.push_back({key, fault, now});
    }
  }
  wrong_.clear();
  return archive_.PutChecked(checked).status;
}

Status Repairer::OpenSame(const ArchiveSet& set, size_t file,
                          std::unique_ptr<SetFile>* opened) {
  const ArchivedFile& known = set.files[file];
  opened->reset();
  {
    const std::lock_guard<std::mutex> lock(mu_);
    if (problems_[ArchiveKeyText(known.key)].empty()) {
      *opened = std::make_unique<DigestedFile>(
          std::make_unique<ArchivedBytes>(archive_, set, known), known.file,
          set.unit_bytes);
      return Status::OK();
    }
  }
  const std::lock_guard<std::mutex> lock(donor_mu_);
  Status failed;
  const auto take = [&](const FileDonor::Open& offer) {
    std::unique_ptr<SetFile> offered;
    bool same = false;
    Status status = offer(&offered);
    if (status.ok()) {
      status = Compare(offered.get(), known, &same);
    }
    offered.reset();  // releases the lane of a remote source
    if (status.ok() && same) {
      // The push reads the file again, and compares the digests of what it
      // uploads.
      status = offer(opened);
    }
    if (!status.ok() && !IsNoDonor(status)) {
      failed = status;
    }
    return !failed.ok() || *opened != nullptr;
  };
  for (FileDonor* const donor :
       {static_cast<FileDonor*>(&own_), options_.from}) {
    if (donor != nullptr && *opened == nullptr) {
      RETURN_IF_ERROR(donor->Offer(known.file, set.unit_bytes, take));
      RETURN_IF_ERROR(failed);
    }
  }
  return Status::OK();
}

Status Repairer::RepairSet(const ArchiveSet& set, RepairedSet* repaired) {
  static_cast<SetFacts&>(*repaired) = SetFactsOf(set);
  repaired->name = set.name;
  RETURN_IF_ERROR(archive_.CheckReadable(set));
  RETURN_IF_ERROR(ReadObjects(set));
  // Stores the findings before the repaired set is committed, because this run
  // may be killed in between.
  RETURN_IF_ERROR(KeepFindings());
  PushRepair repair;
  repair.set = &set;
  std::string lost;
  for (size_t i = 0; i < set.files.size(); ++i) {
    const std::string key = ArchiveKeyText(set.files[i].key);
    const std::string& problem = problems_[key];
    if (problem.empty()) {
      repair.good.insert(key);
      continue;
    }
    if (repaired->problem.empty()) {
      repaired->problem = problem;
    }
    RETURN_IF_ERROR(CheckStopped());
    std::unique_ptr<SetFile> same;
    RETURN_IF_ERROR(OpenSame(set, i, &same));
    if (same == nullptr && lost.empty()) {
      lost = problem;
    }
  }
  if (!lost.empty()) {
    repaired->problem = lost;
  }
  if (repaired->problem.empty() || !lost.empty()) {
    return Status::OK();
  }
  DamagedSet source(set, [this, &set](size_t file,
                                      std::unique_ptr<SetFile>* opened) {
    RETURN_IF_ERROR(OpenSame(set, file, opened));
    return *opened != nullptr
               ? Status::OK()
               : MakeStatus(EndState::kCorrupt,
                            ArchiveKeyText(set.files[file].key) +
                                ": a copy with the same bytes was found, but "
                                "it has disappeared since");
  });
  PushOptions push;
  push.label = set.label;
  push.host = set.host;
  push.software = options_.software;
  push.lanes = options_.lanes;
  push.new_id = options_.new_id;
  push.log = set.log;
  push.steady_seconds = options_.steady_seconds;
  push.host_seconds = [&set] { return set.host_seconds; };
  push.cancelled = options_.cancelled;
  push.repair = &repair;
  push.progress = options_.progress;
  PushSummary pushed;
  const Status status = PushSet(archive_, &source, push, &pushed);
  summary_->uploaded_files += pushed.uploaded_files;
  summary_->uploaded_bytes += pushed.uploaded_bytes;
  summary_->reused_files += pushed.reused_files;
  summary_->reused_bytes += pushed.reused_bytes;
  if (status.ok()) {
    repaired->by = pushed.name;
    repaired->own_bytes = pushed.uploaded_bytes;
  }
  return status;
}

Status Repairer::Run() {
  ArchiveHead head;
  RETURN_IF_ERROR(archive_.ReadHead(&head));
  SetName name;
  const bool is_named = ParseSetName(options_.set, &name);
  std::vector<FoundSet> listed;
  RETURN_IF_ERROR(archive_.ListSets(&listed));
  std::vector<ArchiveSet> sets;
  std::vector<RepairedSet> unreadable;
  RepairedSets repaired_before;
  for (auto found = listed.rbegin(); found != listed.rend(); ++found) {
    if (!found->is_done || (is_named && found->name != name)) {
      continue;
    }
    std::optional<ArchiveSet> set;
    const Status read = archive_.ReadSet(*found, &set);
    // No message may tell the operator to remove a set that only has another
    // key.
    const bool is_foreign = Archive::IsForeign(read, set);
    if (EndStateOf(read) == EndState::kCorrupt) {
      RepairedSet& damaged = unreadable.emplace_back();
      damaged.name = found->name;
      damaged.problem = MessageOf(read);
    } else if (is_named || !is_foreign) {
      RETURN_IF_ERROR(read);
    }
    if (!read.ok() || !set.has_value()) {
      continue;  // not sealed with this key, or a prune removed it
    }
    repaired_before.Add(set->name, set->repairs);
    sets.push_back(*std::move(set));
  }
  if (sets.empty() && unreadable.empty()) {
    return MakeStatus(EndState::kRefused,
                      archive_.store()->place() + ": found no set" +
                          (options_.set.empty() ? "" : " " + options_.set) +
                          " that is committed and has a readable record",
                      "sstferry archive list " +
                          ShellWord(archive_.store()->place()));
  }
  Status verdict;
  for (const ArchiveSet& set : sets) {
    if (!is_named && repaired_before.IsReplaced(set.name)) {
      continue;
    }
    RETURN_IF_ERROR(RepairSet(set, &summary_->sets.emplace_back()));
    const RepairedSet& done = summary_->sets.back();
    if (verdict.ok() && !done.problem.empty() && !done.is_repaired()) {
      verdict = MakeStatus(
          EndState::kCorrupt,
          "set " + SetNameText(set.name) + ": " + done.problem +
              (options_.from == nullptr ? "; no other set of this archive "
                                        : "; neither another set of this "
                                          "archive nor ") +
              (options_.from == nullptr
                   ? "has the same bytes"
                   : "the place that --from names has the same bytes"),
          options_.from == nullptr
              ? "sstferry archive repair " +
                    ShellWord(archive_.store()->place()) + " " +
                    SetNameText(set.name) + " --from OTHER_COPY"
              : "");
    }
  }
  for (const RepairedSet& set : unreadable) {
    if (verdict.ok()) {
      verdict = MakeStatus(
          EndState::kCorrupt,
          "set " + SetNameText(set.name) +
              ": its record cannot be read, so it cannot be repaired: " +
              set.problem,
          "sstferry archive remove " + ShellWord(archive_.store()->place()) +
              " " + SetNameText(set.name));
    }
    summary_->sets.push_back(set);
  }
  return verdict;
}

}  // namespace

std::unique_ptr<FileDonor> MakeDirectoryDonor(const std::string& directory) {
  return std::make_unique<DirectoryDonor>(directory);
}

std::unique_ptr<FileDonor> MakeArchiveDonor(const Archive& archive) {
  return std::make_unique<ArchiveDonor>(archive);
}

std::unique_ptr<FileDonor> MakeSourceDonor(SetSource* source) {
  return std::make_unique<SourceDonor>(source);
}

Status RepairArchive(const Archive& archive, const RepairOptions& options,
                     RepairSummary* summary) {
  *summary = RepairSummary();
  return Repairer(archive, options, summary).Run();
}

}  // namespace sstferry
