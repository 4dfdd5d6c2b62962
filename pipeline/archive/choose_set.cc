#include "pipeline/archive/choose_set.h"

#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "format/end_state.h"
#include "format/printable.h"
#include "pipeline/archive/log_index.h"
#include "sstferry/options.h"

namespace sstferry {

using rocksdb::Status;

namespace {

constexpr char kLatest[] = "latest";

bool IsDirectory(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

bool HoldsArchive(const std::string& directory) {
  std::error_code error;
  return std::filesystem::is_regular_file(directory + "/" + kArchiveHeadKey,
                                          error) &&
         !std::filesystem::exists(directory + "/CURRENT", error);
}

// Parses a time, and rounds it down to whole seconds, which names of sets use.
bool ReadTime(const std::string& text, uint64_t* seconds) {
  uint64_t micros = 0;
  if (!ParseLogTime(text, &micros)) {
    return false;
  }
  *seconds = micros / 1'000'000;
  return true;
}

class Chooser {
 public:
  Chooser(const Archive& archive, const std::string& which, ArchiveSet* set)
      : archive_(archive), which_(which), set_(set) {}

  Status Run() {
    ArchiveHead head;
    RETURN_IF_ERROR(archive_.ReadHead(&head));
    // A prune may remove the chosen set during the call. Then another attempt
    // chooses among the remaining sets.
    constexpr int kTries = 3;
    for (int i = 0; i < kTries; ++i) {
      RETURN_IF_ERROR(ListDone());
      bool is_gone = false;
      const Status status = Choose(&is_gone);
      if (!is_gone) {
        return status;
      }
    }
    return MakeStatus(EndState::kBusy,
                      archive_.store()->place() +
                          ": a prune keeps removing the chosen set; run the "
                          "same command again");
  }

 private:
  Status ListDone() {
    std::vector<FoundSet> all;
    RETURN_IF_ERROR(archive_.ListSets(&all));
    done_.clear();
    for (const FoundSet& found : all) {
      if (found.is_done) {
        done_.push_back(found);
      }
    }
    return Status::OK();
  }

  Status Choose(bool* is_gone) {
    SetName name;
    uint64_t until = kMaxArchiveSeconds;
    if (ParseSetName(which_, &name)) {
      for (const FoundSet& found : done_) {
        if (found.name == name) {
          return Read(found, set_, is_gone);
        }
      }
      return NoSet("no set " + which_ + " that is whole");
    }
    if (which_.empty() || which_ == kLatest || ReadTime(which_, &until)) {
      return ChooseNewest(until, is_gone);
    }
    for (auto found = done_.rbegin(); found != done_.rend(); ++found) {
      ArchiveSet read;
      RETURN_IF_ERROR(Read(*found, &read, is_gone));
      if (*is_gone || read.label == which_) {
        return ChooseOfSecond(found->name.seconds, is_gone);
      }
    }
    return NoSet("no whole set with the label '" + Printable(which_) + "'");
  }

  Status ChooseNewest(uint64_t until, bool* is_gone) {
    for (auto found = done_.rbegin(); found != done_.rend(); ++found) {
      if (found->name.seconds <= until) {
        return ChooseOfSecond(found->name.seconds, is_gone);
      }
    }
    return NoSet(done_.empty() ? "no set that is whole"
                               : "no whole set from " + ArchiveTimeText(until) +
                                     " or before; the oldest time that can be "
                                     "restored is " +
                                     ArchiveTimeText(
                                         done_.front().name.seconds));
  }

  // Chooses the set with the greatest sequence number among the sets of one
  // second. The names of these sets do not show their order, because they
  // differ only in random ids.
  Status ChooseOfSecond(uint64_t seconds, bool* is_gone) {
    const bool by_label = !which_.empty() && which_ != kLatest;
    uint64_t unused = 0;
    const std::string label =
        by_label && !ReadTime(which_, &unused) ? which_ : "";
    std::vector<ArchiveSet> sets;
    for (const FoundSet& found : done_) {
      if (found.name.seconds == seconds) {
        RETURN_IF_ERROR(Read(found, &sets.emplace_back(), is_gone));
        if (*is_gone) {
          return Status::OK();
        }
      }
    }
    RepairedSets repaired;
    for (const ArchiveSet& read : sets) {
      repaired.Add(read.name, read.repairs);
    }
    bool has_one = false;
    for (ArchiveSet& read : sets) {
      if (repaired.IsReplaced(read.name)) {
        continue;  // the damaged original of a repaired set
      }
      if ((label.empty() || read.label == label) &&
          (!has_one || read.sequence >= set_->sequence)) {
        *set_ = std::move(read);
        has_one = true;
      }
    }
    *is_gone = !has_one;
    return Status::OK();
  }

  Status Read(const FoundSet& found, ArchiveSet* set, bool* is_gone) const {
    std::optional<ArchiveSet> read;
    RETURN_IF_ERROR(archive_.ReadSet(found, &read));
    *is_gone = !read.has_value();
    if (read.has_value()) {
      *set = *std::move(read);
    }
    return Status::OK();
  }

  Status NoSet(const std::string& what) const {
    return MakeStatus(
        EndState::kRefused,
        archive_.store()->place() + ": found " + what +
            (done_.empty() ? ""
                           : "; the newest is " +
                                 SetNameText(done_.back().name)),
        std::string(done_.empty() ? "sstferry archive push SOURCE "
                                  : "sstferry archive list ") +
            ShellWord(archive_.store()->place()));
  }

  const Archive& archive_;
  const std::string& which_;
  ArchiveSet* const set_;
  std::vector<FoundSet> done_;  // the oldest first
};

}  // namespace

Status ChooseSet(const Archive& archive, const std::string& which,
                 ArchiveSet* set) {
  return Chooser(archive, which, set).Run();
}

void FindArchive(SourceAddress* address) {
  if (!address->is_directory() || address->directory.empty()) {
    return;
  }
  std::string directory = address->directory;
  std::string set;
  if (!IsDirectory(directory)) {
    // Tries every '@', because the directory's name and the label may contain
    // it, too.
    for (size_t at = directory.rfind('@');
         at != std::string::npos && at > 0 && at + 1 < directory.size();
         at = directory.rfind('@', at - 1)) {
      if (HoldsArchive(directory.substr(0, at))) {
        set = directory.substr(at + 1);
        directory.resize(at);
        break;
      }
    }
  }
  if (HoldsArchive(directory)) {
    std::error_code error;
    SourceAddress found;
    found.archive.emplace().directory =
        std::filesystem::absolute(directory, error).string();
    found.set = set;
    *address = std::move(found);
  }
}

}  // namespace sstferry
