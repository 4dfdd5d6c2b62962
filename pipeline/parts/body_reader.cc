#include "pipeline/parts/body_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "format/end_state.h"
#include "pipeline/snapshot/posix_files.h"
#include "sstferry/descriptor.h"

namespace sstferry {

using rocksdb::Status;

BodyReader::BodyReader(std::string path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor) {}

BodyReader::~BodyReader() { close(descriptor_); }

Status BodyReader::Open(const std::string& path,
                        std::unique_ptr<BodyReader>* out) {
  const int descriptor = OpenLinked(path, O_RDONLY).Release();
  if (descriptor < 0) {
    return ErrnoStatus(EndState::kSourceError, "cannot open", path, errno);
  }
  // This is advice only: it doubles the kernel's readahead.
  posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
  out->reset(new BodyReader(path, descriptor));
  return Status::OK();
}

Status BodyReader::Read(uint64_t offset, size_t bytes, char* buffer) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t got = pread(descriptor_, buffer + done, bytes - done,
                              static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return ErrnoStatus(EndState::kSourceError,
                         "cannot read offset " + std::to_string(offset + done) +
                             " of",
                         path_, errno);
    }
    if (got == 0) {
      return MakeStatus(EndState::kCorrupt,
                        path_ + ": expected " + std::to_string(bytes) +
                            " bytes at offset " + std::to_string(offset) +
                            ", found " + std::to_string(done));
    }
    done += static_cast<size_t>(got);
  }
  return Status::OK();
}

}  // namespace sstferry
