// Parses the time after the @ of an archive's address. An operator may write it
// as "-2h", "yesterday", "14:50", a date, or a date with a time and an offset.
#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// If an address ends with @ and a time in one of these forms, replaces the time
// by the same time in UTC, for example 2026-11-24T13:50:00Z. A time without an
// offset is in this machine's time zone. `now_seconds` is the present time, in
// seconds since 1970.
//   -2h         two hours ago; also with s, m, d (days) or w (weeks)
//   yesterday   the last second of yesterday
//   14:50       the latest time at which clocks showed 14:50; also 14:50:30
//   2026-11-24  the last second of this day
//   2026-11-24T14:50:00+01:00  a space may replace the T
// Sets *local to the time in this machine's time zone, with the offset. If the
// address has no such time, changes nothing and clears *local.
//   InvalidArgument  clocks in the time zone show the time twice, because
//                    summer time ends, or never, because it begins
[[nodiscard]] rocksdb::Status ResolveMoment(uint64_t now_seconds,
                                            std::string* address,
                                            std::string* local);

}  // namespace sstferry
