#include "pipeline/serve/other_file_answers.h"

#include "format/end_state.h"
#include "format/frame.h"
#include "format/printable.h"

namespace sstferry {

using rocksdb::Status;

// Reads a file. If that fails, the transfer continues: the target gets the
// problem and reports it with the file's name.
void OtherFileAnswers::Read(const std::string& name,
                            const Transfer& transfer) {
  facts_ = OtherFilePart();
  name_ = name;
  const Status status =
      transfer.ReadOther(name, &contents_, &facts_.is_private);
  if (!status.ok()) {
    facts_.problem = MessageOf(status);
    contents_.clear();
  }
  facts_.file_bytes = contents_.size();
  facts_.content = DigestOf(contents_);
}

Status OtherFileAnswers::Answer(const OtherFileRequest& request,
                                Transfer* transfer, Channel* channel) {
  if (!MayBeCopied(request.name)) {
    return MakeStatus(EndState::kDenied,
                      "other files: expected a name that may be copied, found "
                      "'" + Printable(request.name) + "'");
  }
  if (request.offset == 0 || request.name != name_) {
    Read(request.name, *transfer);
  }
  OtherFilePart part = facts_;
  if (part.problem.empty() && request.offset > contents_.size()) {
    return MakeStatus(EndState::kCorrupt,
                      "other files: expected an offset of at most " +
                          std::to_string(contents_.size()) + " in " + name_ +
                          ", found " + std::to_string(request.offset));
  }
  if (part.problem.empty()) {
    part.bytes = contents_.substr(request.offset, kMaxOtherPartBytes);
  }
  if (request.offset + part.bytes.size() >= contents_.size()) {
    name_.clear();
    contents_ = std::string();  // releases the memory
  }
  Status status =
      transfer->pace()->rate_bucket()->Take(part.bytes.size());
  if (status.ok()) {
    status = transfer->pace()->TakeFromAll(part.bytes.size() +
                                           kFrameHeaderBytes);
  }
  return status.ok() ? channel->SendMessage(FrameType::kOtherFilePart, part)
                     : status;
}

}  // namespace sstferry
