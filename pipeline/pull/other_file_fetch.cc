#include "pipeline/pull/other_file_fetch.h"

#include <string>
#include <vector>

#include "format/other_file.h"
#include "format/printable.h"
#include "pipeline/disk/durable.h"
#include "pipeline/disk/other_files.h"
#include "pipeline/pull/pull_reporter.h"
#include "pipeline/pull/pull_state.h"
#include "sstferry/options.h"

namespace sstferry {
namespace {

using rocksdb::Status;

// An application may write a file anew while its parts come.
constexpr int kReadings = 3;

// "a, b and 3 more".
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
                    name + ": expected the bytes that the source told of, "
                           "found others");
}

// Asks for the parts of one file until it has come, or the source says in
// *problem why it cannot. TryAgain: the source has read another one meanwhile.
Status AskForFile(const PullContext& context, const std::string& name,
                  std::string* contents, CopiedFile* file,
                  std::string* problem) {
  contents->clear();
  OtherFilePart first;
  bool begun = false;
  while (!begun || contents->size() < first.file_bytes) {
    if (context.failure->failed()) {
      return context.failure->status();
    }
    OtherFilePart part;
    Status status = context.link->session()->AskOtherFile(
        {name, contents->size()}, &part);
    if (status.ok()) {
      status = context.state->pace.Take(part.bytes.size());
    }
    if (!status.ok()) {
      return status;
    }
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

Status FetchOne(const PullContext& context, const std::string& name,
                uint64_t bytes_left, CopiedFiles* files, uint64_t* bytes) {
  std::string contents;
  std::string problem;
  CopiedFile file;
  Status status = Status::TryAgain("not asked yet");
  for (int i = 0; i < kReadings && status.IsTryAgain(); ++i) {
    status = AskForFile(context, name, &contents, &file, &problem);
  }
  if (status.IsTryAgain()) {
    problem = "the source read another file each time";
  } else if (status.ok() && problem.empty() && contents.size() > bytes_left) {
    problem = KeptBackName(KeptBack::kSize);
  } else if (!status.ok()) {
    return status;
  }
  if (!problem.empty()) {
    context.report->Note("the application's file " + name +
                         " did not come: " + Printable(problem));
    return Status::OK();
  }
  (*files)[name] = file;
  *bytes += contents.size();
  return WriteOtherFile(context.disk.get(), context.workspace->other_dir(),
                        name, contents);
}

}  // namespace

void NoteOtherFiles(const PullContext& context) {
  const std::vector<OtherFile>& files = context.plan->opened.other_files;
  if (context.options->other_files == OtherFiles::kIgnore || files.empty()) {
    return;
  }
  std::vector<std::string> come;
  for (const OtherFile& file : files) {
    if (file.kept_back == KeptBack::kNo) {
      come.push_back(file.name);
    }
  }
  if (!come.empty()) {
    context.report->Note(
        "the application's files in the source's directory come with the "
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
      context.report->Note(
          "the application's files in the source's directory that do not "
          "come: " + Listed(stay) + " (each " +
          KeptBackName(static_cast<KeptBack>(why)) + ")");
    }
  }
}

Status FetchOtherFiles(const PullContext& context) {
  const bool wanted = context.options->other_files == OtherFiles::kCopy;
  NoteOtherFiles(context);
  Workspace* const workspace = context.workspace;
  Status status = workspace->ClearOther();
  CopiedFiles files;
  uint64_t bytes = 0;
  for (const OtherFile& file : context.plan->opened.other_files) {
    if (status.ok() && wanted && file.kept_back == KeptBack::kNo) {
      status = FetchOne(context, file.name, kMaxOtherFilesBytes - bytes,
                        &files, &bytes);
    }
  }
  if (status.ok() && !files.empty()) {
    status = WriteCopiedFiles(context.disk.get(), workspace->other_dir(),
                              files);
  }
  if (status.ok()) {
    status = SyncDirectory(context.disk.get(), workspace->dir());
  }
  context.report->result()->other_files = files.size();
  context.report->result()->other_files_bytes = bytes;
  FaultPoint("OtherFiles:Fetched");
  return status;
}

}  // namespace sstferry
