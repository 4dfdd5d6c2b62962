// Times as operators write them after the @ of an archive: "-2h", "yesterday",
// "14:50", a date, or RFC 3339 with an offset.
#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/status.h"

namespace sstferry {

// If an address ends with @ and a time in one of the forms below, replaces the
// time by the same time in UTC, as in RFC 3339. A time without an offset is in
// this machine's time zone. `now_seconds`: the present time, in seconds since
// 1970.
//   -2h         that long ago: a number and s, m, h, d or w
//   yesterday   the last second of yesterday
//   14:50       the latest such time; seconds may follow
//   2026-11-24  the last second of that day
//   2026-11-24T14:50:00+01:00  a blank may replace the T
// Sets *local to this time with its offset. For every other address, changes
// nothing and clears *local.
//   InvalidArgument  the time zone has this time twice, as when summer time
//                    ends, or not at all
[[nodiscard]] rocksdb::Status ResolveMoment(uint64_t now_seconds,
                                            std::string* address,
                                            std::string* local);

}  // namespace sstferry
