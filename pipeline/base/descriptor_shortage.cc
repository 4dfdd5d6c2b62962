#include "pipeline/base/descriptor_shortage.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "format/end_state.h"
#include "sstferry/descriptor.h"

namespace sstferry {
namespace {

std::atomic<uint64_t> descriptor_shortages{0};

// Minimum number of free descriptors. With fewer, a lack of descriptors may
// have caused a failure. The minimum is larger than the dozen descriptors that
// are needed to open a snapshot, because a failed open has released them again.
constexpr rlim_t kFewDescriptors = 32;

bool FewDescriptorsAreFree() {
  rlimit most{};
  if (getrlimit(RLIMIT_NOFILE, &most) != 0) {
    return false;
  }
  const Descriptor opened =
      OpenPath("/proc/self/fd", O_RDONLY | O_DIRECTORY);
  const DirectoryStream names =
      opened.is_open() ? NamesIn(opened.get()) : nullptr;
  if (names == nullptr) {
    return errno == EMFILE || errno == ENFILE;
  }
  rlim_t used = 0;
  while (readdir(names.get()) != nullptr) {
    ++used;
  }
  return used + kFewDescriptors > most.rlim_cur;
}

}  // namespace

uint64_t DescriptorShortages() { return descriptor_shortages; }

void NoteDescriptorShortage(int error) {
  if (error == EMFILE || error == ENFILE) {
    ++descriptor_shortages;
  }
}

void LookForDescriptorShortage() {
  if (!OpenPath("/dev/null", O_RDONLY).is_open()) {
    NoteDescriptorShortage(errno);
  }
}

rocksdb::Status RetriedAfterShortage(const rocksdb::Status& status,
                                     uint64_t before) {
  return EndStateOf(status) == EndState::kSourceError &&
                 (DescriptorShortages() != before || FewDescriptorsAreFree())
             ? MakeStatus(EndState::kDeadPeer, MessageOf(status))
             : status;
}

}  // namespace sstferry
