#include "tests/crash/crash_points.h"
#include "tests/support/sample_bytes.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

namespace sstferry {
namespace {

namespace fs = std::filesystem;

std::string TextOf(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return test::BytesIn(in);
}

void Collect(const std::string& text, const std::string& pattern,
             std::set<std::string>* found) {
  const std::regex expression(pattern);
  for (std::sregex_iterator it(text.begin(), text.end(), expression), end;
       it != end; ++it) {
    found->insert((*it)[1]);
  }
}

}  // namespace

const char* NameOf(Scenario scenario) {
  static constexpr const char* kNames[] = {
      "fresh",    "again",          "restart",    "unsynced",
      "in place", "swap",           "swap first", "swap owed",
      "clone",    "clone unsynced", "clone swap", "clone refresh",
      "linked swap"};
  return kNames[static_cast<int>(scenario)];
}

const std::vector<CrashPoint>& CrashPoints() {
  using enum Scenario;
  static const std::vector<CrashPoint> points = {
      {"Workspace:Created", {kFresh}},
      {"Workspace:LockMade", {kFresh, kAgain}},
      {"Workspace:Locked", {kFresh, kAgain}},
      {"Workspace:LeftoverRemoved", {kAgain, kRestart}},
      {"Workspace:DirectoriesMade", {kFresh, kRestart}},
      {"Workspace:ExchangeProbed", {kSwap}},
      {"Puller:DatabaseCreated", {kFresh, kRestart}},
      {"Puller:JournalWritten", {kFresh, kRestart}},
      {"Puller:JournalSynced", {kFresh, kRestart, kClone}},
      {"Puller:HeadWritten", {kFresh, kRestart, kInPlace, kLinkedSwap}},
      {"LinkedTarget:CopyMade", {kLinkedSwap}},
      {"Refresh:TargetOpened", {kInPlace, kLinkedSwap}},
      {"Refresh:ZeroLeft", {kInPlace}},
      {"Refresh:AllIngested", {kInPlace, kLinkedSwap}},
      {"Refresh:SummaryWritten", {kInPlace}},
      {"Refresh:FaultCleared", {kInPlace}},
      {"Refresh:Compacted", {kInPlace, kLinkedSwap}},
      {"JournalFile:TailCut", {kAgain}},
      {"Puller:StagedIngested", {kAgain}},
      {"LaneClient:ChunkWritten", {kFresh, kAgain}},
      {"StagingFile:Written", {kFresh, kAgain}},
      {"LaneClient:ChunkSynced",
       {kFresh, kAgain, kUnsynced, kClone, kCloneSwap}},
      {"Ingestor:JournalAppended", {kFresh, kAgain, kUnsynced}},
      {"Ingestor:NamesSynced", {kFresh, kAgain}},
      {"Ingestor:JournalSynced", {kFresh, kAgain, kInPlace, kLinkedSwap}},
      {"Ingestor:Ingested", {kFresh, kAgain, kUnsynced, kInPlace, kLinkedSwap}},
      {"OtherFiles:Written", {kFresh, kAgain, kClone}},
      {"OtherFiles:Fetched", {kFresh, kUnsynced, kSwap, kClone}},
      {"Puller:TotalsAgreed",
       {kFresh, kAgain, kUnsynced, kInPlace, kClone, kCloneSwap, kCloneRefresh,
        kLinkedSwap}},
      {"SeedTarget:DatabaseClosed", {kFresh, kAgain, kUnsynced}},
      {"Puller:DatabaseClosed", {kFresh, kAgain, kUnsynced, kLinkedSwap}},
      {"Puller:DatabaseSynced", {kFresh, kAgain, kUnsynced, kLinkedSwap}},
      {"WriteDurably:Written", {kFresh, kAgain, kUnsynced, kClone}},
      {"WriteDurably:Synced", {kFresh, kAgain, kUnsynced, kClone}},
      {"WriteDurably:Renamed", {kFresh, kAgain, kUnsynced, kInPlace, kClone}},
      {"Puller:SummaryWritten", {kFresh, kAgain, kUnsynced, kClone}},
      {"Puller:AccessSet", {kFresh, kAgain, kUnsynced, kSwap, kClone}},
      {"OtherFiles:Placed", {kFresh, kUnsynced, kSwap, kSwapFirst, kClone}},
      {"Workspace:ExchangeRecorded", {kSwap, kSwapFirst, kCloneRefresh}},
      {"Puller:BeforeSwapDone", {kSwap, kSwapFirst, kLinkedSwap}},
      {"Workspace:NamesExchanged", {kSwap, kSwapFirst, kCloneRefresh}},
      {"Workspace:Exchanged",
       {kSwap, kSwapFirst, kCloneSwap, kCloneRefresh, kLinkedSwap}},
      {"Puller:AfterSwapDone", {kSwap, kSwapFirst}},
      {"Workspace:OldRetired", {kSwap, kSwapFirst, kSwapOwed, kCloneRefresh}},
      {"Workspace:OldKept", {kLinkedSwap}},
      {"PacedRemoval:Entering", {kSwap, kSwapOwed}},
      {"PacedRemoval:FileCut", {kSwap}, /*only_killed=*/true},
      {"PacedRemoval:FileRemoved", {kSwap, kSwapOwed, kCloneRefresh}},
      {"CloneTarget:FilesLinked", {kCloneSwap, kCloneRefresh}},
      {"CloneTarget:ReuseRecorded", {kCloneSwap}},
      {"CloneTarget:FilesMade", {kClone, kCloneSwap}},
      {"UnitStore:Recorded", {kClone}},
      {"UnitStore:NamesSynced", {kClone}},
      {"UnitStore:RecordsSynced", {kClone}},
      {"FinishClone:ReusedMoved", {kClone, kCloneSwap}},
      {"FinishClone:OptionsWritten", {kClone, kCloneUnsynced}},
      {"FinishClone:ManifestWritten", {kClone, kCloneUnsynced, kCloneSwap}},
      {"CloneTarget:CurrentWritten",
       {kClone, kCloneUnsynced, kCloneSwap, kCloneRefresh}},
      {"Workspace:Renamed", {kFresh, kUnsynced, kClone}},
      {"Workspace:Published", {kFresh, kUnsynced, kClone}},
      {"Workspace:PartRemoved", {kFresh, kUnsynced, kInPlace, kSwap}},
  };
  return points;
}

const std::vector<const char*>& StandbyCrashPoints() {
  static const std::vector<const char*> points = {
      "Standby:TailCut",     "Standby:Appended",     "Standby:WalEnded",
      "Standby:WalBegun",    "Standby:Synced",       "Standby:Marked",
      "Standby:WalsCarried", "Promote:TailCut",      "Promote:TransferWritten",
      "Promote:CurrentMade", "Promote:CurrentWritten", "Promote:PartRemoved",
      "View:Copied",         "StandbyAudit:Opened",  "StandbyViews:Begun",
      "StandbyViews:Copied", "StandbyViews:Named",   "StandbyViews:Linked",
      "StandbyViews:Exchanged", "StandbyViews:OldRemoved"};
  return points;
}

const std::vector<const char*>& CutCrashPoints() {
  static const std::vector<const char*> points = {
      "CloneTarget:FilesLinked",    "Puller:TotalsAgreed",
      "CloneTarget:CurrentWritten", "Workspace:ExchangeRecorded",
      "Workspace:NamesExchanged",   "Workspace:Exchanged",
      "Workspace:OldRetired"};
  return points;
}

const std::vector<const char*>& LostCrashPoints() {
  static const std::vector<const char*> points = {"Standby:FilesLinked",
                                                  "Standby:FilesKept"};
  return points;
}

std::set<std::string> FaultPointsInCode() {
  std::set<std::string> found;
  const fs::path root = fs::path(SSTFERRY_SOURCE_DIR) / "pipeline";
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file()) {
      continue;
    }
    Collect(TextOf(entry.path()), "FaultPoint\\(\\s*\"([^\"]*)\"", &found);
  }
  return found;
}

std::set<std::string> FaultPointsInTable() {
  const std::string text =
      TextOf(fs::path(SSTFERRY_SOURCE_DIR) / "pipeline/README.md");
  const size_t begin = text.find("## Crash table");
  const size_t end = text.find("\n## ", begin + 1);
  const std::string table = text.substr(begin, end - begin);
  std::set<std::string> found;
  // Reads the first cell of each row, which may name several points.
  const std::regex row("\n\\|([^|]*)\\|");
  for (std::sregex_iterator it(table.begin(), table.end(), row), last;
       it != last; ++it) {
    Collect((*it)[1], "`([A-Za-z]+:[A-Za-z]+)`", &found);
  }
  return found;
}

}  // namespace sstferry
