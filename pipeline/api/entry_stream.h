// Reads the keys of one side of a verify, with a digest of each value.
#pragma once

#include <optional>
#include <string>

#include "format/key_for_message.h"
#include "format/messages.h"
#include "pipeline/pull/source_link.h"
#include "rocksdb/comparator.h"
#include "rocksdb/status.h"

namespace sstferry {

// Reads one side's entries in a key interval, page by page.
class EntryStream {
 public:
  EntryStream(Channel* channel, const StallGuard* guard, uint32_t family,
              const KeyInterval& interval, const rocksdb::Comparator* order)
      : channel_(channel), guard_(guard), order_(order) {
    request_.family = family;
    request_.interval = interval;
  }

  // Moves to the next entry. Sets *entry to null after the last entry.
  [[nodiscard]] rocksdb::Status Next(const EntryDigest** entry) {
    if (at_ == page_.entries.size() && !page_.complete) {
      RETURN_IF_ERROR(
          channel_->SendMessage(FrameType::kEntriesRequest, request_));
      RETURN_IF_ERROR(guard_->ReceiveMessage(
          channel_, FrameType::kEntriesReply, &page_));
      if (page_.entries.empty() && !page_.complete) {
        return MakeStatus(EndState::kCorrupt,
                          "entries: expected at least one, found none");
      }
      at_ = 0;
      RETURN_IF_ERROR(CheckOrder());
      if (!page_.entries.empty()) {
        request_.after = page_.entries.back().key;
      }
    }
    *entry = at_ < page_.entries.size() ? &page_.entries[at_++] : nullptr;
    return rocksdb::Status::OK();
  }

 private:
  // Checks that the side sends its keys in ascending order. Otherwise its
  // entries could repeat forever, or a key could be compared with the wrong
  // key.
  [[nodiscard]] rocksdb::Status CheckOrder() const {
    const std::string* before =
        request_.after.has_value() ? &*request_.after : nullptr;
    for (const EntryDigest& entry : page_.entries) {
      if (before != nullptr && order_->Compare(*before, entry.key) >= 0) {
        return MakeStatus(EndState::kCorrupt,
                          "entries: expected ascending keys, found " +
                              KeyForMessage(entry.key) + " out of order");
      }
      before = &entry.key;
    }
    return rocksdb::Status::OK();
  }

  Channel* const channel_;
  const StallGuard* const guard_;
  const rocksdb::Comparator* const order_;
  EntriesRequest request_;
  EntriesReply page_;
  size_t at_ = 0;
};

}  // namespace sstferry
