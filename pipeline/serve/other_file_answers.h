// Sends files that the application keeps in the database directory, besides
// those of RocksDB, to a target that requests them.
#pragma once

#include <string>

#include "format/messages.h"
#include "pipeline/serve/transfer.h"
#include "pipeline/wire/channel.h"

namespace sstferry {

// Answers the requests of one target. A file is sent in parts. The whole file
// is read when its first part is requested, so that all parts fit together.
class OtherFileAnswers {
 public:
  // Sends the requested part. Obeys the rate limit of the transfer.
  //   kDenied   targets may not request files with this name
  //   kCorrupt  the file has no such part
  [[nodiscard]] rocksdb::Status Answer(const OtherFileRequest& request,
                                       Transfer* transfer, Channel* channel);

 private:
  void Read(const std::string& name, const Transfer& transfer);

  std::string name_;      // the file that is being sent; empty: none
  std::string contents_;  // at most kMaxOtherFileBytes
  OtherFilePart facts_;   // size, digest and problem of this file
};

}  // namespace sstferry
