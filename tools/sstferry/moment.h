// Times as operators write them after the @ of an archive: "-2h", "yesterday",
// "14:50", a date, or RFC 3339 with an offset.
#pragma once

#include <cstdint>
#include <string>

namespace sstferry {

// Replaces such a time at the end of an address, after its last @, by RFC 3339
// in UTC, as of `now_seconds` since 1970 and in this machine's time zone.
//   -2h         that long ago: a number and s, m, h, d or w
//   yesterday   the last second of yesterday
//   14:50       the last time that clocks here showed it, also with seconds
//   2026-11-24  the last second of that day
//   2026-11-24T14:50:00+01:00, also with a blank instead of the T, and without
//               the offset for this machine's time zone
// *local is then that time with its offset. Returns false, and leaves both
// unchanged, for every other address.
bool ResolveMoment(uint64_t now_seconds, std::string* address,
                   std::string* local);

}  // namespace sstferry
