// Views of a standby that is followed: databases of hard links, which
// applications open for reading only.
//
//   DIR.view/current                      link to the newest view
//   DIR.view/sstferry.view-MOMENT-N/      a view, with its moment (microseconds
//                                         by the source's clock) and a number
//                                         that no other view has had
//   DIR.view/sstferry.making/             a view that is being made
//   DIR.view/sstferry.next                the link that becomes `current`
//
// A view is the database that a promotion would have made at one moment. It is
// made and synced as sstferry.making and then renamed; only after that, one
// rename makes `current` lead to it. So after a crash every view's name leads
// to a complete view, and `current` leads to the newest view or the one before.
//
// A view contains no link to a file to which the standby still appends.
//
// All names in DIR.view are made and removed through a descriptor of that
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
  std::string dir;  // the standby's directory
  std::chrono::milliseconds every{0};
  uint32_t keep = 6;
  std::shared_ptr<rocksdb::FileSystem> file_system;
  LogFunction log;
};

// Makes and removes the views of one standby.
//
// Threads: Begin() starts a thread that calls Make() and RemoveOld(); without
//          it, another thread may call them. All other functions: any.
class StandbyViews {
 public:
  using Clock = std::chrono::steady_clock;

  // Checks DIR.view, if it exists. `standby` must outlive this object.
  //   kRefused  it is no directory, contains other files, or another account
  //             owns it or may write there
  [[nodiscard]] static rocksdb::Status Open(
      const StandbyViewsOptions& options, Standby* standby,
      std::unique_ptr<StandbyViews>* views);
  ~StandbyViews();  // stops the thread
  StandbyViews(const StandbyViews&) = delete;
  StandbyViews& operator=(const StandbyViews&) = delete;

  // Starts the thread that makes a view every options.every while the source
  // confirms the standby's contents.
  [[nodiscard]] rocksdb::Status Begin();
  // Stops the thread's work, permanently.
  void Cancel() { stop_.Stop(); }

  // Stores whether the source has confirmed that its records continue the
  // standby's contents. A cut is a confirmation, too.
  void SetConfirmed(bool is_confirmed);

  // Makes a view of the standby's current contents. If the newest view already
  // shows them, returns OK and sets *made to false.
  //   kCorrupt      the standby is known to be damaged or different
  //   kSourceError  the source has not confirmed the contents, or their moment
  //                 is unknown
  //   kRefused      as Open()
  [[nodiscard]] rocksdb::Status Make(bool* made);
  // Removes leftovers of crashes, and views that were replaced more than
  // keep * every ago. Errors: as Open().
  [[nodiscard]] rocksdb::Status RemoveOld();

  // Sets the members of the state about views.
  void AddTo(StandbyState* state) const;

 private:
  struct OldView {
    std::string name;
    Clock::time_point until;
  };

  StandbyViews(const StandbyViewsOptions& options, Standby* standby);
  std::string PathOf(const std::string& name) const;
  // Replaces the path of the open directory in a message by DIR.view.
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
  bool is_loaded_ = false;     // the three members below are valid
  std::string current_;        // name of the newest view; empty: none
  std::vector<OldView> old_;
  uint64_t last_number_ = 0;
  Clock::time_point due_ = Clock::now();  // when the next view is due
  StandbyPosition made_at_;    // contents of the newest view
  FollowFile made_of_;         // the cut of that view

  mutable std::mutex mu_;
  bool is_confirmed_ = false;  // guarded by mu_, all below
  uint64_t moment_micros_ = 0;
  uint64_t made_ = 0;
  std::string problem_;

  std::thread thread_;
};

}  // namespace sstferry
