#include "pipeline/pull/other_file_fetch.h"

#include <string>
#include <vector>

#include "format/other_file.h"
#include "format/printable.h"
#include "pipeline/disk/durable.h"
#include "pipeline/disk/other_files.h"
#include "sstferry/options.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// Maximum number of times that a file is requested. An application may rewrite
// the file while its parts are sent.
constexpr int kReadings = 3;

// Returns "a, b and 3 more".
std::string Listed(const std::vector<std::string>& names) {
  constexpr size_t kShown = 10;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kShown; ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return names.size() <= kShown
             ? text
             : text + " and " + std::to_string(names.size() - kShown) + " more";
}

Status OtherBytes(const std::string& name) {
  return MakeStatus(EndState::kCorrupt,
                    name + ": expected the bytes that the source announced, "
                           "found other bytes");
}

// Requests the parts of one file until the file is complete, or the source
// reports a *problem. Returns TryAgain if the file changed at the source
// meanwhile.
Status AskForFile(const AskForFilePart& ask, const std::string& name,
                  std::string* contents, CopiedFile* file,
                  std::string* problem) {
  contents->clear();
  OtherFilePart first;
  bool begun = false;
  while (!begun || contents->size() < first.file_bytes) {
    OtherFilePart part;
    RETURN_IF_ERROR(ask(name, contents->size(), &part));
    *problem = part.problem;
    if (!problem->empty()) {
      return Status::OK();
    }
    if (!begun) {
      first = part;
      begun = true;
    } else if (part.content != first.content ||
               part.file_bytes != first.file_bytes) {
      return Status::TryAgain("the source read the file anew");
    }
    const uint64_t missing = first.file_bytes - contents->size();
    if (part.bytes.size() > missing || (part.bytes.empty() && missing > 0)) {
      return OtherBytes(name);
    }
    *contents += part.bytes;
  }
  *file = {first.content, first.is_private};
  return DigestOf(*contents) == first.content ? Status::OK()
                                              : OtherBytes(name);
}

// Receives one file from the source. Sets *problem to the reason why the file
// was not received, or leaves it empty.
Status ReadOne(const AskForFilePart& ask, const std::string& name,
               uint64_t bytes_left, std::string* contents, CopiedFile* file,
               std::string* problem) {
  Status status = Status::TryAgain("not asked yet");
  for (int i = 0; i < kReadings && status.IsTryAgain(); ++i) {
    status = AskForFile(ask, name, contents, file, problem);
  }
  if (status.IsTryAgain()) {
    *problem = "the file changed at the source during each attempt";
    return Status::OK();
  }
  if (status.ok() && problem->empty() && contents->size() > bytes_left) {
    *problem = KeptBackName(KeptBack::kSize);
  }
  return status;
}

}  // namespace

void NoteOtherFiles(OtherFiles asked, const std::vector<OtherFile>& files,
                    PullReporter* report) {
  if (asked == OtherFiles::kIgnore || files.empty()) {
    return;
  }
  std::vector<std::string> come;
  for (const OtherFile& file : files) {
    if (file.kept_back == KeptBack::kNo) {
      come.push_back(file.name);
    }
  }
  if (!come.empty()) {
    report->Note(
        "the application's files in the source's directory are copied with the "
        "database, but not as of the same point in time: " + Listed(come));
  }
  for (uint8_t why = 1; why <= kMaxKeptBack; ++why) {
    std::vector<std::string> stay;
    for (const OtherFile& file : files) {
      if (file.kept_back == static_cast<KeptBack>(why)) {
        stay.push_back(Printable(file.name));
      }
    }
    if (!stay.empty()) {
      report->Note(
          "the application's files in the source's directory that are not "
          "copied: " + Listed(stay) + " (each " +
          KeptBackName(static_cast<KeptBack>(why)) + ")");
    }
  }
}

Status FetchOtherFiles(OtherFiles asked, const std::vector<OtherFile>& files,
                       const AskForFilePart& ask, rocksdb::FileSystem* disk,
                       Workspace* workspace, PullReporter* report) {
  NoteOtherFiles(asked, files, report);
  Status status = workspace->ClearOther();
  CopiedFiles came;
  uint64_t bytes = 0;
  for (const OtherFile& file : files) {
    const bool wanted =
        asked == OtherFiles::kCopy && file.kept_back == KeptBack::kNo;
    if (!status.ok() || !wanted) {
      continue;
    }
    std::string contents;
    std::string problem;
    CopiedFile copied;
    status = ReadOne(ask, file.name, kMaxOtherFilesBytes - bytes, &contents,
                     &copied, &problem);
    if (!problem.empty() && status.ok()) {
      report->Note("the application's file " + file.name +
                   " was not copied: " + Printable(problem));
    } else if (status.ok()) {
      came[file.name] = copied;
      bytes += contents.size();
      status = WriteOtherFile(disk, workspace->other_dir(), file.name,
                              contents);
    }
  }
  if (status.ok() && !came.empty()) {
    status = WriteCopiedFiles(disk, workspace->other_dir(), came);
  }
  if (status.ok()) {
    status = SyncDirectory(disk, workspace->dir());
  }
  report->SetOtherFiles(came.size(), bytes);
  FaultPoint("OtherFiles:Fetched");
  return status;
}

}  // namespace sstferry
