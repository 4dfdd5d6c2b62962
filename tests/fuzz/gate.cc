#include "tests/fuzz/gate.h"

namespace sstferry::fuzz {
namespace {

// Returns the last frame of the answer to a request; kEnd if it has no answer.
FrameType AnswerTo(FrameType request) {
  switch (request) {
    case FrameType::kHello:
      return FrameType::kHelloAck;
    case FrameType::kListRequest:
      return FrameType::kListReply;
    case FrameType::kStatusRequest:
      return FrameType::kStatusReply;
    case FrameType::kFactsRequest:
      return FrameType::kFactsReply;
    case FrameType::kPinRequest:
      return FrameType::kPinReply;
    case FrameType::kOtherFileRequest:
      return FrameType::kOtherFilePart;
    case FrameType::kOpenRequest:
      return FrameType::kPlanEnd;
    case FrameType::kFinish:
      return FrameType::kFinished;
    default:
      return FrameType::kEnd;
  }
}

}  // namespace

Gate::Gate(Tests side) : side_(side), waits_(side == Tests::kSource) {}

void Gate::Said(FrameType type) {
  std::lock_guard<std::mutex> lock(mu_);
  if (side_ == Tests::kSource ? type == FrameType::kOpenRequest
                              : waits_ && type == answer_) {
    waits_ = false;
  }
}

void Gate::Heard(FrameType type) {
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (type == FrameType::kEnd) {
      closed_ = true;  // it sends nothing after that
    } else if (side_ == Tests::kSource) {
      waits_ = waits_ || type == FrameType::kPlanEnd;
    } else if (AnswerTo(type) != FrameType::kEnd) {
      waits_ = true;
      answer_ = AnswerTo(type);
    }
  }
  changed_.notify_all();
}

// Ends the waits of the script if a target is tested. A source under test
// continues until it reads the end of the connection.
void Gate::SaidAll() {
  if (side_ == Tests::kTarget) {
    Close();
  }
}

void Gate::Close() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    closed_ = true;
  }
  changed_.notify_all();
}

void Gate::Await() {
  std::unique_lock<std::mutex> lock(mu_);
  released_ = true;
  changed_.notify_all();
  changed_.wait(lock, [this] { return closed_ || waits_; });
  released_ = false;
}

void Gate::AwaitRelease() {
  std::unique_lock<std::mutex> lock(mu_);
  changed_.wait(lock, [this] { return closed_ || released_; });
}

}  // namespace sstferry::fuzz
