#include "pipeline/base/descriptor_shortage.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "format/end_state.h"

namespace sstferry {
namespace {

std::atomic<uint64_t> descriptor_shortages{0};

}  // namespace

uint64_t DescriptorShortages() { return descriptor_shortages; }

void NoteDescriptorShortage(int error) {
  if (error == EMFILE || error == ENFILE) {
    ++descriptor_shortages;
  }
}

void LookForDescriptorShortage() {
  const int one = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (one < 0) {
    NoteDescriptorShortage(errno);
  } else {
    close(one);
  }
}

rocksdb::Status RetriedAfterShortage(const rocksdb::Status& status,
                                     uint64_t before) {
  return EndStateOf(status) == EndState::kSourceError &&
                 DescriptorShortages() != before
             ? MakeStatus(EndState::kDeadPeer, MessageOf(status))
             : status;
}

}  // namespace sstferry
