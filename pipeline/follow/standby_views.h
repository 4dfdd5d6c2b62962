// Views of a running standby. A view is a database of hard links, which
// applications open only for reading.
//
//   DIR.view/current                      symbolic link to the newest view
//   DIR.view/sstferry.view-MOMENT-N/      a view; MOMENT is the moment that it
//                                         shows (microseconds by the source's
//                                         clock), and N a number that no other
//                                         view has had
//   DIR.view/sstferry.making/             a view that is being made
//   DIR.view/sstferry.next                the link that becomes `current`
//
// A view is the database that a promotion would have made at one moment. It is
// made and synced as sstferry.making and then renamed. Only after that, one
// rename makes `current` lead to it. So after a crash every view is complete,
// and `current` leads to the newest view or to the one before it.
//
// A view contains no link to a file to which the standby still appends.
//
// All names in DIR.view are created and removed through a descriptor of that
// directory. This account owns the directory, and no other account may write in
// it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/base/stop_signal.h"
#include "pipeline/follow/standby.h"
#include "rocksdb/file_system.h"
#include "rocksdb/status.h"
#include "sstferry/descriptor.h"
#include "sstferry/follow.h"

namespace sstferry {

// The parts of a view's name.
struct ViewName {
  uint64_t moment_micros = 0;
  uint64_t number = 0;
  friend bool operator==(const ViewName&, const ViewName&) = default;
};
std::string ToText(const ViewName& name);
// Returns false if `text` is not exactly ToText() of a name.
[[nodiscard]] bool ParseViewName(const std::string& text, ViewName* name);

// Finds the view to which DIR.view/current leads. Returns false if there is
// none.
[[nodiscard]] bool FindNewestView(const std::string& dir, ViewName* name);

struct StandbyViewsOptions {
  std::string dir;  // directory of the standby
  std::chrono::milliseconds every{0};
  uint32_t keep = 6;
  std::shared_ptr<rocksdb::FileSystem> file_system;
  LogFunction log;
};

// Makes and removes the views of one standby.
//
// Threads: Begin() starts a thread that calls Make() and RemoveOld(). Without
// Begin(), one other thread may call these two. Any thread may call the other
// functions.
class StandbyViews {
 public:
  using Clock = std::chrono::steady_clock;

  // Checks DIR.view, if it exists. `standby` must outlive this object.
  //   kRefused  DIR.view is no directory, contains other files, belongs to
  //             another account, or can be written by another account
  [[nodiscard]] static rocksdb::Status Open(
      const StandbyViewsOptions& options, Standby* standby,
      std::unique_ptr<StandbyViews>* views);
  ~StandbyViews();  // stops the thread
  StandbyViews(const StandbyViews&) = delete;
  StandbyViews& operator=(const StandbyViews&) = delete;

  // Starts a thread that makes a view at each interval options.every. It makes
  // none while the source does not confirm the standby's contents.
  [[nodiscard]] rocksdb::Status Begin();
  // Stops the thread permanently.
  void Cancel() { stop_.Stop(); }

  // Stores whether the source has confirmed that its records continue the
  // standby's contents. A cut also confirms this.
  void SetConfirmed(bool is_confirmed);

  // Makes a view of the standby's present contents. If the newest view already
  // shows them, returns OK and sets *made to false.
  //   kCorrupt      the standby is known to be damaged or different
  //   kSourceError  the source has not confirmed the contents, or it is unknown
  //                 which moment they show
  //   kRefused      as for Open()
  [[nodiscard]] rocksdb::Status Make(bool* made);
  // Removes leftovers of crashes. Removes views that were replaced more than
  // keep * every ago. Returns the errors of Open().
  [[nodiscard]] rocksdb::Status RemoveOld();

  // Sets those members of *state that describe views.
  void AddTo(StandbyState* state) const;

 private:
  struct OldView {
    std::string name;
    Clock::time_point until;
  };

  StandbyViews(const StandbyViewsOptions& options, Standby* standby);
  std::string PathOf(const std::string& name) const;
  // Returns the status with DIR.view in its message instead of the path of the
  // open descriptor.
  rocksdb::Status Shown(const rocksdb::Status& status) const;
  [[nodiscard]] rocksdb::Status OpenDirectory(bool creates);
  [[nodiscard]] rocksdb::Status CheckNames(std::vector<std::string>* names);
  [[nodiscard]] rocksdb::Status Load();
  [[nodiscard]] rocksdb::Status Copy(const FollowFile& record,
                                     const StandbyPosition& end);
  [[nodiscard]] rocksdb::Status Publish(const ViewName& name);
  void Run();
  void Step();
  void Report(const std::string& problem);

  const StandbyViewsOptions options_;
  const std::string view_dir_;
  Standby* const standby_;
  StopSignal stop_;

  // Used only by the thread that makes views.
  Descriptor directory_;       // view_dir_, opened
  bool is_loaded_ = false;     // true: the three members below are set
  std::string current_;        // name of the newest view; empty: none
  std::vector<OldView> old_;
  uint64_t last_number_ = 0;
  Clock::time_point due_ = Clock::now();  // the next view is due at this time
  StandbyPosition made_at_;    // end of the records in the newest view
  FollowFile made_of_;         // record of the cut in the newest view

  mutable std::mutex mu_;
  bool is_confirmed_ = false;  // guarded by mu_, like all members below
  uint64_t moment_micros_ = 0;
  uint64_t made_ = 0;
  std::string problem_;

  std::thread thread_;
};

}  // namespace sstferry
