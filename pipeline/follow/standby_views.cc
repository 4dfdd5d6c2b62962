#include "pipeline/follow/standby_views.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "format/end_state.h"
#include "format/printable.h"
#include "pipeline/base/known_fault.h"
#include "pipeline/base/standby_files.h"
#include "pipeline/base/standby_record.h"
#include "pipeline/base/start_thread.h"
#include "pipeline/disk/access.h"
#include "pipeline/disk/durable.h"
#include "pipeline/pull/linked_copy.h"
#include "pipeline/snapshot/posix_files.h"

namespace sstferry {
namespace {

using rocksdb::IOOptions;
using rocksdb::Status;
using std::chrono::milliseconds;

constexpr char kPrefix[] = "sstferry.view-";
constexpr char kMaking[] = "sstferry.making";
constexpr char kNext[] = "sstferry.next";
constexpr char kCurrent[] = "current";
// Minimum and maximum pause of the thread while it cannot or need not make a
// view.
constexpr milliseconds kLeastPause{10};
constexpr milliseconds kMostPause{1000};
// Other accounts may enter the directory, but only this account may create
// names in it.
constexpr Access kViewsAccess{Access::kAsMade, Access::kAsMade, 0755};
constexpr Access kMakingAccess{Access::kAsMade, Access::kAsMade, 0700};

std::string ViewDirOf(const std::string& dir) { return dir + ".view"; }

Status Refused(const std::string& dir, const std::string& found) {
  return MakeStatus(EndState::kRefused,
                    dir + ": expected a directory of this account with the "
                          "views of a standby only, found " +
                        found + "; move it away, or follow without "
                                "--view-every");
}

// Returns the text of a symbolic link in an open directory. Empty if there is
// no such link.
std::string LinkText(int directory, const char* name) {
  char text[PATH_MAX];
  const ssize_t bytes = readlinkat(directory, name, text, sizeof(text));
  return bytes > 0 ? std::string(text, static_cast<size_t>(bytes)) : "";
}

// Returns the time since the directory `name` was last modified. Uses this
// machine's clock, which may have been set in the meantime. Returns 0 if the
// time of the modification cannot be read.
milliseconds AgeOf(const Descriptor& parent, const std::string& name) {
  FileId found;
  if (!FileIdOfNameIn(parent, name, &found).ok()) {
    return milliseconds(0);
  }
  const uint64_t made_ns = found.modified_ns;
  const auto now_ns = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(
          std::chrono::system_clock::now().time_since_epoch())
          .count());
  return milliseconds(now_ns > made_ns ? (now_ns - made_ns) / 1'000'000 : 0);
}

}  // namespace

std::string ToText(const ViewName& name) {
  return kPrefix + std::to_string(name.moment_micros) + "-" +
         std::to_string(name.number);
}

bool ParseViewName(const std::string& text, ViewName* name) {
  if (!text.starts_with(kPrefix)) {
    return false;
  }
  char* end = nullptr;
  name->moment_micros =
      std::strtoull(text.c_str() + std::strlen(kPrefix), &end, 10);
  name->number = *end == '-' ? std::strtoull(end + 1, nullptr, 10) : 0;
  return ToText(*name) == text;  // rejects any other spelling of the same name
}

bool FindNewestView(const std::string& dir, ViewName* name) {
  const Descriptor directory =
      OpenPath(ViewDirOf(dir), O_RDONLY | O_DIRECTORY);
  return directory.is_open() &&
         ParseViewName(LinkText(directory.get(), kCurrent), name);
}

StandbyViews::StandbyViews(const StandbyViewsOptions& options,
                           Standby* standby)
    : options_(options),
      view_dir_(ViewDirOf(options.dir)),
      standby_(standby) {}

StandbyViews::~StandbyViews() {
  Cancel();
  if (thread_.joinable()) thread_.join();
}

Status StandbyViews::Open(const StandbyViewsOptions& options, Standby* standby,
                          std::unique_ptr<StandbyViews>* views) {
  std::unique_ptr<StandbyViews> opened(new StandbyViews(options, standby));
  RETURN_IF_ERROR(opened->OpenDirectory(/*creates=*/false));
  *views = std::move(opened);
  return Status::OK();
}

std::string StandbyViews::PathOf(const std::string& name) const {
  return PathOfOpen(directory_) + "/" + name;
}

Status StandbyViews::Shown(const Status& status) const {
  if (status.ok()) {
    return status;
  }
  return MakeStatus(EndStateOf(status),
                    RenamePath(SentenceOf(status), PathOfOpen(directory_),
                               view_dir_),
                    NextOf(status));
}

// Opens DIR.view, and checks the directory and the names in it. If the
// directory was replaced, opens it again.
Status StandbyViews::OpenDirectory(bool creates) {
  bool is_named = false;
  if (directory_.is_open()) {
    RETURN_IF_ERROR(IsNamed(directory_.get(), view_dir_, &is_named));
  }
  if (is_named) {
    return Status::OK();
  }
  directory_ = Descriptor();
  is_loaded_ = false;
  FileId found;
  RETURN_IF_ERROR(FileIdOfName(view_dir_, &found));
  if (!found.exists()) {
    if (!creates) {
      return Status::OK();
    }
    rocksdb::FileSystem* const disk = options_.file_system.get();
    const Status made = disk->CreateDir(view_dir_, IOOptions(), nullptr);
    RETURN_IF_ERROR(WithContext(made, EndStateOf(made), view_dir_));
    RETURN_IF_ERROR(SetAccess(view_dir_, kViewsAccess));
    const std::string parent =
        std::filesystem::path(view_dir_).parent_path().string();
    RETURN_IF_ERROR(SyncDirectory(disk, parent.empty() ? "." : parent));
  }
  Descriptor opened = OpenOwnDirectory(view_dir_);
  if (!opened.is_open()) {
    return errno == EPERM
               ? Refused(view_dir_, "one of another account, or one in which "
                                    "other accounts may write")
           : errno == ELOOP || errno == ENOTDIR
               ? Refused(view_dir_, "a link or a file")
               : ErrnoStatus(EndState::kInternal, "cannot open", view_dir_,
                             errno);
  }
  directory_ = std::move(opened);
  std::vector<std::string> names;
  const Status status = CheckNames(&names);
  if (!status.ok()) {
    directory_ = Descriptor();
  }
  return status;
}

// Lists the names in DIR.view. Refuses a name that this class does not create.
Status StandbyViews::CheckNames(std::vector<std::string>* names) {
  const DirectoryStream list = NamesIn(directory_.get());
  if (list == nullptr) {
    return ErrnoStatus(EndState::kInternal, "cannot list", view_dir_, errno);
  }
  while (const dirent* const entry = readdir(list.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") {
      continue;
    }
    struct stat info;
    const bool is_there = fstatat(directory_.get(), name.c_str(), &info,
                                  AT_SYMLINK_NOFOLLOW) == 0;
    ViewName unused;
    const bool is_known =
        is_there && (name == kCurrent || name == kNext
                         ? S_ISLNK(info.st_mode)
                         : (name == kMaking || ParseViewName(name, &unused)) &&
                               S_ISDIR(info.st_mode));
    if (!is_known) {
      return Refused(view_dir_, "'" + Printable(name) + "'");
    }
    names->push_back(name);
  }
  return Status::OK();
}

// Finds the views that an earlier follower made. Removes unfinished views.
Status StandbyViews::Load() {
  current_.clear();
  old_.clear();
  made_at_ = StandbyPosition();
  std::vector<std::string> names;
  RETURN_IF_ERROR(CheckNames(&names));
  const std::string current = LinkText(directory_.get(), kCurrent);
  std::map<uint64_t, std::string> views;  // the key is the view's number
  for (const std::string& name : names) {
    ViewName view;
    if (name == kMaking || name == kNext) {
      RETURN_IF_ERROR(RemoveIn(directory_.get(), name, view_dir_));
    } else if (ParseViewName(name, &view)) {
      views[view.number] = name;
      last_number_ = std::max(last_number_, view.number);
      if (name == current) current_ = name;
    }
  }
  // A view is replaced when the next view is made. A view after `current` was
  // never shown to a reader, so it is removed immediately.
  const milliseconds kept = options_.every * options_.keep;
  for (auto view = views.begin(); view != views.end(); ++view) {
    if (view->second == current_) {
      due_ = Clock::now() + options_.every -
             std::min(AgeOf(directory_, current_), options_.every);
      continue;
    }
    const auto next = std::next(view);
    const bool was_seen = current_.empty() || next != views.end();
    const std::string& replaced_by =
        next == views.end() ? view->second : next->second;
    const milliseconds age = AgeOf(directory_, replaced_by);
    old_.push_back({view->second,
                    Clock::now() + (was_seen ? kept - std::min(age, kept)
                                             : milliseconds(0))});
  }
  is_loaded_ = true;
  ViewName name;
  const bool has_view = ParseViewName(current_, &name);
  std::lock_guard<std::mutex> lock(mu_);
  moment_micros_ = has_view ? name.moment_micros : 0;
  return Status::OK();
}

Status StandbyViews::RemoveOld() {
  RETURN_IF_ERROR(OpenDirectory(/*creates=*/false));
  if (!directory_.is_open()) {
    return Status::OK();
  }
  if (!is_loaded_) RETURN_IF_ERROR(Load());
  const Clock::time_point now = Clock::now();
  while (!old_.empty() && !stop_.stopped()) {
    const auto first = std::find_if(
        old_.begin(), old_.end(),
        [now](const OldView& view) { return view.until <= now; });
    if (first == old_.end()) {
      break;
    }
    RETURN_IF_ERROR(RemoveIn(directory_.get(), first->name, view_dir_));
    old_.erase(first);
    FaultPoint("StandbyViews:OldRemoved");
  }
  return Status::OK();
}

void StandbyViews::SetConfirmed(bool is_confirmed) {
  std::lock_guard<std::mutex> lock(mu_);
  is_confirmed_ = is_confirmed;
}

Status StandbyViews::Make(bool* made) {
  *made = false;
  RETURN_IF_ERROR(OpenDirectory(/*creates=*/true));
  RETURN_IF_ERROR(RemoveOld());
  const Clock::time_point begin = Clock::now();
  ViewName name;
  const Status status = standby_->UseFiles(
      [&](const FollowFile& record, const StandbyPosition& end) {
        if (end == made_at_ && record == made_of_) {
          return Status::OK();
        }
        {
          std::lock_guard<std::mutex> lock(mu_);
          if (!is_confirmed_ || end.read_micros == 0) {
            return MakeStatus(EndState::kSourceError,
                              "the source has not yet confirmed that its "
                              "database has the same history as " +
                                  options_.dir +
                                  "; the next view is made after that");
          }
        }
        HealthFile fault;
        RETURN_IF_ERROR(FindStandbyFault(options_.file_system.get(),
                                         options_.dir, &fault));
        if (fault.fault != ReplicaFault::kNone) {
          return MakeStatus(EndState::kCorrupt,
                            options_.dir + ": " + FaultSentence(fault));
        }
        RETURN_IF_ERROR(Copy(record, end));
        *made = true;
        made_of_ = record;
        made_at_ = end;
        name = {end.read_micros, ++last_number_};
        return Status::OK();
      });
  if (!status.ok() || !*made) {
    return Shown(status);
  }
  const Status published = Publish(name);
  if (!published.ok()) {
    made_at_ = StandbyPosition();
    *made = false;
    is_loaded_ = false;  // the names in the directory are no longer known
    return Shown(published);
  }
  due_ = begin + options_.every;
  if (options_.log) {
    options_.log(LogLevel::kDebug,
                 "made the view " + view_dir_ + "/" + current_ + " in " +
                     std::to_string(std::chrono::duration_cast<milliseconds>(
                                        Clock::now() - begin)
                                        .count()) +
                     " ms");
  }
  std::lock_guard<std::mutex> lock(mu_);
  moment_micros_ = name.moment_micros;
  ++made_;
  return Status::OK();
}

// Makes and syncs sstferry.making. REQUIRES: until this returns, no cut
// replaces the standby's files.
Status StandbyViews::Copy(const FollowFile& record,
                          const StandbyPosition& end) {
  rocksdb::FileSystem* const disk = options_.file_system.get();
  RETURN_IF_ERROR(RemoveIn(directory_.get(), kMaking, view_dir_));
  const std::string making = PathOf(kMaking);
  const Status made = disk->CreateDir(making, IOOptions(), nullptr);
  RETURN_IF_ERROR(WithContext(made, EndStateOf(made), making));
  RETURN_IF_ERROR(SetAccess(making, kMakingAccess));
  struct stat info;
  if (stat(options_.dir.c_str(), &info) != 0) {
    return ErrnoStatus(EndState::kInternal, "cannot open", options_.dir, errno);
  }
  LinkedCopyOptions copy;
  copy.database_dir = options_.dir;
  copy.copy_dir = making;
  copy.cancelled = [this] { return stop_.stopped(); };
  copy.end = {ManifestNameOf(record), record.manifest_bytes, end.wal_number,
              end.wal_bytes};
  RETURN_IF_ERROR(AccessBeside(options_.dir, &copy.file_access));
  FaultPoint("StandbyViews:Begun");
  LinkedCopy unused;
  RETURN_IF_ERROR(MakeLinkedCopy(copy, disk, &unused));
  FaultPoint("StandbyViews:Copied");
  // A view never changes, so only its owner may change the names in it.
  RETURN_IF_ERROR(
      SetAccess(making, {info.st_uid, info.st_gid, info.st_mode & 0755u}));
  return SyncDirectory(disk, making);
}

// Renames sstferry.making to the name of the view, and makes `current` lead to
// it.
Status StandbyViews::Publish(const ViewName& view) {
  rocksdb::FileSystem* const disk = options_.file_system.get();
  const std::string name = ToText(view);
  const auto rename = [&](const char* from, const std::string& to) {
    const Status status =
        disk->RenameFile(PathOf(from), PathOf(to), IOOptions(), nullptr);
    return WithContext(status, EndStateOf(status), "rename to " + PathOf(to));
  };
  RETURN_IF_ERROR(rename(kMaking, name));
  FaultPoint("StandbyViews:Named");
  // Syncs the view's name before a link leads to it.
  RETURN_IF_ERROR(SyncDirectory(disk, PathOfOpen(directory_)));
  RETURN_IF_ERROR(RemoveIn(directory_.get(), kNext, view_dir_));
  RETURN_IF_ERROR(LinkSymbolically(disk, name, PathOf(kNext)));
  FaultPoint("StandbyViews:Linked");
  RETURN_IF_ERROR(rename(kNext, kCurrent));
  if (!current_.empty()) {
    old_.push_back({current_, Clock::now() + options_.every * options_.keep});
  }
  current_ = name;
  FaultPoint("StandbyViews:Exchanged");
  return SyncDirectory(disk, PathOfOpen(directory_));
}

Status StandbyViews::Begin() {
  return StartThread([this] { Run(); }, &thread_);
}

void StandbyViews::Run() {
  const milliseconds pause =
      std::clamp(options_.every / 10, kLeastPause, kMostPause);
  while (!stop_.stopped()) {
    Step();
    const auto left = std::chrono::ceil<milliseconds>(due_ - Clock::now());
    stop_.WaitFor(left.count() > 0 ? std::min(left, pause) : pause);
  }
}

void StandbyViews::Step() {
  if (!standby_->exists()) {
    return;
  }
  const Clock::time_point now = Clock::now();
  Status status = RemoveOld();
  bool made = false;
  const bool is_due = now >= due_;
  if (status.ok() && is_due) status = Make(&made);
  if (stop_.stopped()) {
    return;
  }
  if (status.ok()) {
    if (is_due) Report("");
    return;
  }
  // Does not report immediately that the source has not confirmed the contents.
  // After a start or a cut, the next answer of the source confirms them.
  if (EndStateOf(status) == EndState::kSourceError &&
      now - due_ < options_.every) {
    return;
  }
  Report(MessageOf(status));
  if (EndStateOf(status) != EndState::kSourceError) {
    due_ = now + options_.every;  // an attempt costs as much as a view
  }
}

// Stores why no new view was made. Logs a warning if the reason is a new one.
void StandbyViews::Report(const std::string& problem) {
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (std::exchange(problem_, problem) == problem || problem.empty()) {
      return;
    }
  }
  if (options_.log) {
    options_.log(LogLevel::kWarning,
                 "no new view in " + view_dir_ + ": " + problem);
  }
}

void StandbyViews::AddTo(StandbyState* state) const {
  std::lock_guard<std::mutex> lock(mu_);
  state->view_moment_micros = moment_micros_;
  state->views_made = made_;
  state->view_problem = problem_;
}

}  // namespace sstferry
