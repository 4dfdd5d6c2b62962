// Locks directories that are in use, by flock(). The process that works in a
// directory holds the lock. Other processes only check the lock.
#pragma once

#include <string>

#include "rocksdb/status.h"
#include "sstferry/descriptor.h"

namespace sstferry {

// Opens a file to lock it. Opens the file for writing, because NFSv4 locks no
// file that is open only for reading. If this process may not write the file,
// opens the file for reading. On failure, errno has the reason.
Descriptor OpenToLock(const std::string& path);

// Locks an open file. `path` is used in messages. Waits up to 100 ms, because
// IsFileLocked() in another process holds the lock for a few microseconds.
//   kBusy      another process holds the lock
//   kInternal  the file system cannot lock the file, or cannot lock it now
[[nodiscard]] rocksdb::Status LockFile(int fd, const std::string& path);

// Returns true if a process holds the lock of the file at `path`. Returns false
// if the file does not exist. Changes nothing.
bool IsFileLocked(const std::string& path);

// Locks the directory at the path `dir` for a short time. Waits at most 10 s
// while another process holds the lock. The caller closes *lock to release the
// lock. If the directory does not exist, returns OK and *lock is closed. After
// an error, *lock is closed, too.
//   kBusy      another process holds the lock
//   kInternal  the directory cannot be opened or locked
[[nodiscard]] rocksdb::Status LockDirectory(const std::string& dir,
                                            Descriptor* lock);

}  // namespace sstferry
