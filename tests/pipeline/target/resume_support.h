// Pulls that are ended in the middle.
#pragma once

#include <string>

#include "sstferry/target.h"
#include "tests/support/fake_peer.h"
#include "tests/support/sample_database.h"
#include "tests/support/scratch_dir.h"

namespace sstferry {

// As ServeSample(), but a snapshot outlives its target.
ServeOptions ServeAndHold(const std::string& directory);

// A pull that is cancelled when it comes to a fault point for the nth time.
Summary PullAndCancel(const PullOptions& options, const std::string& point,
                      int nth);

// A pull in a process of its own that dies there; lanes, target, mode,
// visibility, replace, durability, verify, command line and parts of `options`
// hold; parts are of "default", with two bounds of printable text.
void PullAndDie(const HostPort& source, const PullOptions& options,
                const std::string& point, int nth = 1);

// Pulls again, and requires the source's entries, as many files as chunks and
// nothing left beside the target.
Summary PullToTheEnd(const ScratchDir& dir, const PullOptions& options);

bool NotesMention(const Summary& summary, const std::string& text);

}  // namespace sstferry
