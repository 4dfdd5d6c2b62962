// Verifies the checksum of a block whose bytes arrive in pieces, for blocks
// that are too large to keep in memory.
#pragma once

#include <cstdint>
#include <memory>

#include "rocksdb/slice.h"
#include "rocksdb/status.h"

#include "format/rocksdb/sst_footer.h"

namespace sstferry {

// Call Add() with the payload and the trailer in order, then Finish(). One
// thread.
class SstBlockVerifier {
 public:
  SstBlockVerifier(const SstFooter& footer, const SstBlockHandle& handle);
  ~SstBlockVerifier();
  SstBlockVerifier(const SstBlockVerifier&) = delete;
  SstBlockVerifier& operator=(const SstBlockVerifier&) = delete;

  void Add(const rocksdb::Slice& bytes);
  // Returns Corruption if the checksum is wrong, or if the number of added
  // bytes is not the handle's size plus the trailer.
  [[nodiscard]] rocksdb::Status Finish() const;

 private:
  struct State;
  void AddPayload(const rocksdb::Slice& bytes);
  uint32_t Computed() const;

  const SstChecksum checksum_;
  const uint32_t modifier_;
  const SstBlockHandle handle_;
  uint64_t added_ = 0;
  char trailer_[kSstBlockTrailerBytes] = {};
  std::unique_ptr<State> state_;
};

}  // namespace sstferry
