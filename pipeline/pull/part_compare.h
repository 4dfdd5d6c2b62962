// Compares a part, or a piece of it, with the source's. refresh/ implements it;
// a pull that makes a new directory has nothing to compare.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/messages.h"
#include "rocksdb/status.h"

namespace sstferry {

// Compares one piece of a part. Threads: the lane's.
class PartComparison {
 public:
  virtual ~PartComparison() = default;

  // Reads the piece at this side, as much as fits into memory.
  [[nodiscard]] virtual rocksdb::Status Read() = 0;
  // Sets *equal, or *sift to what has to be asked first, or *delta to the
  // request for what differs. `reply` is the source's; null: it was not asked
  // for groups. Errors: of reading.
  [[nodiscard]] virtual rocksdb::Status Compare(
      const GroupReply* reply, bool* equal, std::optional<SiftRequest>* sift,
      std::vector<DeltaRequest>* delta) = 0;
  // Sets *delta by the answer to *sift.
  virtual void TakeSifted(const SiftReply& reply,
                          std::vector<DeltaRequest>* delta) = 0;
  // Returns, after Compare(), where the next piece begins; not set: this was
  // the last one.
  virtual const std::optional<std::string>& rest() const = 0;
};

// Compares the parts of one pull. Threads: any.
class PartComparer {
 public:
  virtual ~PartComparer() = default;

  // Returns how many entries the source's groups should have.
  virtual uint32_t ChooseGroupEntries(const Part& part) const = 0;
  // Begins to compare a piece. `group_entries` are those that the source was
  // asked for; 0: it was not asked for groups. Borrows the part.
  virtual std::unique_ptr<PartComparison> Begin(const Part& part,
                                                const KeyInterval& piece,
                                                uint32_t group_entries) = 0;
  // Sets the first and the last key that this side has in the piece; not set:
  // it has none.
  [[nodiscard]] virtual rocksdb::Status FindOutermost(
      const Part& part, const KeyInterval& piece,
      std::optional<std::string>* first, std::optional<std::string>* last) = 0;
};

}  // namespace sstferry
