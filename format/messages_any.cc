#include "format/message_fields.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

Totals& Totals::operator+=(const Totals& other) {
  chunks += other.chunks;
  entries += other.entries;
  key_value_bytes += other.key_value_bytes;
  sst_bytes += other.sst_bytes;
  return *this;
}

SSTFERRY_CODEC(Hello)
SSTFERRY_CODEC(HelloAck)
SSTFERRY_CODEC(End)

}  // namespace sstferry
