// Pulls that are interrupted.
#pragma once

#include <string>

#include "sstferry/target.h"
#include "tests/support/fake_peer.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry {

// Returns options like ServeSample(), but snapshots are retained for an hour.
ServeOptions ServeAndHold(const std::string& directory);

// Runs a pull, and cancels it at the nth time that it reaches a fault point.
Summary PullAndCancel(const PullOptions& options, const std::string& point,
                      int nth);

// Runs a pull in another process, which exits at the nth time that it reaches a
// fault point. Of `options`, only target, lanes, chunk size, mode, command
// line, verify and durability are used.
void PullAndDie(const HostPort& source, const PullOptions& options,
                const std::string& point, int nth = 1);

// Pulls again. Requires the source's entries, as many files as chunks, and that
// no workspace is left.
Summary PullToTheEnd(const ScratchDir& dir, const PullOptions& options);

bool NotesMention(const Summary& summary, const std::string& text);

}  // namespace sstferry
