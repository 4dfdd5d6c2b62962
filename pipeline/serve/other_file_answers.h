// Sends the application's files to a target that requests them.
#pragma once

#include <string>

#include "format/messages.h"
#include "pipeline/serve/transfer.h"
#include "pipeline/wire/channel.h"

namespace sstferry {

// Answers the requests of one target. Keeps the contents of the current file,
// so that all its parts come from one reading.
class OtherFileAnswers {
 public:
  // Sends the requested part, at the pace of the transfer.
  //   kDenied   no target may ask for this name
  //   kCorrupt  the file has no such part
  [[nodiscard]] rocksdb::Status Answer(const OtherFileRequest& request,
                                       Transfer* transfer, Channel* channel);

 private:
  void Read(const std::string& name, const Transfer& transfer);

  std::string name_;      // name of the current file; empty: none
  std::string contents_;  // at most kMaxOtherFileBytes
  OtherFilePart facts_;   // facts about the current file, without its bytes
};

}  // namespace sstferry
