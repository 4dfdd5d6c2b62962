// Answers a target that asks for the application's files of its transfer.
#pragma once

#include <string>

#include "format/messages.h"
#include "pipeline/serve/transfer.h"
#include "pipeline/wire/channel.h"

namespace sstferry {

// Holds the file at hand, so that its parts are those of one reading.
// Threads: the control session's reader.
class OtherFileAnswers {
 public:
  // Sends the part that is asked for, at the pace of the transfer.
  //   kDenied   a name that no target may ask for
  //   kCorrupt  no part of the file
  [[nodiscard]] rocksdb::Status Answer(const OtherFileRequest& request,
                                       Transfer* transfer, Channel* channel);

 private:
  void Read(const std::string& name, const Transfer& transfer);

  std::string name_;      // empty: none is at hand
  std::string contents_;  // at most kMaxOtherFileBytes
  OtherFilePart facts_;   // of it, without bytes
};

}  // namespace sstferry
