#include "pipeline/api/verdict.h"

#include <algorithm>

#include "pipeline/base/standby_files.h"
#include "pipeline/base/standby_record.h"

namespace sstferry {
namespace {

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IntervalsBound(const std::optional<std::string>& pulled,
                 const std::optional<std::string>& compared) {
  return !pulled.has_value() ||
         (compared.has_value() && *pulled == KeyToText(*compared));
}

// Returns true if the pull with this record included all data in `selection`.
bool AskedForAll(const LastTransfer& record, const Selection& selection) {
  const bool families =
      record.asked.families.empty() ||
      (!selection.families.empty() &&
       std::all_of(selection.families.begin(), selection.families.end(),
                   [&record](const std::string& family) {
                     return Has(record.asked.families, family);
                   }));
  return families &&
         IntervalsBound(record.asked.begin, selection.interval.begin) &&
         IntervalsBound(record.asked.end, selection.interval.end);
}

// Returns the name of a family that only one side has, if no creation or drop
// at the origin since the pull can explain this. Empty: there is no such
// family.
std::string UnexplainedFamily(const JudgedSide& copy,
                              const JudgedSide& origin) {
  const std::vector<std::string>& moved = copy.record->column_families;
  for (const std::string& name : origin.families_only_here) {
    if (Has(moved, name)) {
      return name;  // the pull had copied this family
    }
  }
  for (const std::string& name : copy.families_only_here) {
    if (!Has(moved, name)) {
      return name;  // the pull had not copied this family
    }
  }
  return "";
}

std::string Command(const char* command, const SourceAddress& first,
                    const SourceAddress& second, const std::string& options) {
  return std::string("sstferry ") + command + " " +
         ShellWord(first.ToString()) + " " + ShellWord(second.ToString()) +
         options;
}

// Returns true if the copy is a standby on this machine. Only its follower can
// repair it.
bool IsStandbyHere(const JudgedSide& copy) {
  return copy.address.is_directory() && IsStandby(copy.address.directory);
}

// Returns a command that refreshes the copy. Returns "" if the copy is remote,
// because such a command must run on the copy's machine.
std::string Refresh(const JudgedSide& copy, const JudgedSide& origin,
                    const std::string& options) {
  return copy.address.is_directory()
             ? Command("refresh", origin.address, copy.address,
                       origin.access + options)
             : "";
}

// Returns a sentence about families that only the copy has, because a refresh
// keeps them. Empty if the copy has no such family.
std::string BeyondRepair(const JudgedSide& copy, const std::string& copy_label,
                         const JudgedSide& origin) {
  if (copy.families_only_here.empty() || !copy.address.is_directory()) {
    return "";
  }
  const std::string& name = copy.families_only_here.front();
  const size_t others = copy.families_only_here.size() - 1;
  return "a refresh keeps column family '" +
         KeyToText(rocksdb::Slice(name.data(),
                                  std::min(name.size(), kMaxShownKeyBytes))) +
         "'" + (others == 0 ? "" : " and " + std::to_string(others) + " more") +
         ", which only " + copy_label +
         " has; to drop what the source does not have, run " +
         Refresh(copy, origin, " --drop-missing");
}

// If the side was promoted, returns the start of a sentence about this; else
// "".
std::string PromotedWords(const std::string& label, const JudgedSide& side) {
  return !side.record.has_value() || side.record->promoted_at.empty()
             ? ""
             : label + " was promoted at " + side.record->promoted_at +
                   ", and is no copy since, so ";
}

// Returns the verdict if no record shows that one side was pulled from the
// other. Then it is unknown which side is the copy.
Verdict JudgeStrangers(const JudgedSide& left, const JudgedSide& right) {
  Verdict verdict;
  verdict.reason = PromotedWords("left", left) + PromotedWords("right", right);
  if (verdict.reason.empty()) {
    verdict.reason = "neither side has a record of a pull from the other, so ";
  }
  verdict.reason += "they are compared as they are: left at sequence " +
                    std::to_string(left.sequence) + ", right at sequence " +
                    std::to_string(right.sequence);
  return verdict;
}

Verdict JudgeCopy(const JudgedSide& copy, const std::string& copy_label,
                  const JudgedSide& origin, const std::string& origin_label,
                  const Selection& selection) {
  const LastTransfer& record = *copy.record;
  const uint64_t then = *record.snapshot_sequence;
  const std::string less = SelectionWords(record.asked);
  Verdict verdict;
  if (IsStandbyHere(copy)) {
    verdict.next =
        MendStandbyCommand(record.source, copy.address.directory) +
        (record.source == origin.address.ToString() ? origin.access : "");
  } else {
    verdict.next = Refresh(copy, origin, less + " --verify");
    verdict.beyond_repair = BeyondRepair(copy, copy_label, origin);
  }
  verdict.reason = copy_label + " was pulled from " + origin_label +
                   " at sequence " + std::to_string(then) + ", ";
  const std::string family = UnexplainedFamily(copy, origin);
  if (!AskedForAll(record, selection)) {
    verdict.reason += "and only with" + less +
                      ", which is less than was compared";
    const bool copy_is_left = copy_label == "left";
    verdict.next = Command("verify", (copy_is_left ? copy : origin).address,
                           (copy_is_left ? origin : copy).address,
                           origin.access + less);
  } else if (origin.sequence < then ||
             (origin.sequence == then && copy.sequence > then &&
              IsStandbyHere(copy))) {
    verdict.next.clear();  // it would bring the older state to the copy
    verdict.beyond_repair.clear();
    verdict.reason += "but " + origin_label + " is at sequence " +
                      std::to_string(origin.sequence) + ", and " + copy_label +
                      " has later writes: an older state was restored there, "
                      "or an older set or snapshot is compared; find out which "
                      "side is right";
  } else if (origin.sequence == then) {
    verdict.is_fault = true;
    verdict.reason += "and " + origin_label +
                      " is still at that sequence: no write "
                      "at " + origin_label +
                      " explains this";
  } else if (!family.empty()) {
    verdict.is_fault = true;
    verdict.reason += "and " + origin_label + " is at sequence " +
                      std::to_string(origin.sequence) +
                      ", but no write there explains column family '" +
                      KeyToText(rocksdb::Slice(
                          family.data(),
                          std::min(family.size(), kMaxShownKeyBytes))) +
                      "'";
  } else {
    verdict.state = EndState::kChangedSince;
    verdict.reason += "and " + origin_label + " is at sequence " +
                      std::to_string(origin.sequence) +
                      ": it was written to since the pull, so this is "
                      "expected, but does not rule out damage";
  }
  const bool asks_for_refresh =
      verdict.is_fault || verdict.state == EndState::kChangedSince;
  if (asks_for_refresh && !IsStandbyHere(copy) &&
      HasMoreWrites(record, copy.sequence, origin.sequence)) {
    verdict.next.clear();  // CheckNotNewer() would refuse this command
    verdict.reason += "; " + copy_label + " was written to, up to sequence " +
                      std::to_string(copy.sequence) +
                      ": find out which side is right; a refresh with "
                      "--adopt removes what only " + copy_label + " has";
  }
  return verdict;
}

}  // namespace

bool IsPulledFrom(const JudgedSide& copy, const JudgedSide& origin) {
  if (!copy.record.has_value() || !copy.record->is_copy() ||
      !copy.record->snapshot_sequence.has_value() ||
      origin.database_id.empty() ||
      copy.record->source_database_id != origin.database_id) {
    return false;
  }
  const bool is_copy_too =
      origin.record.has_value() &&
      origin.record->source_database_id == origin.database_id;
  return !is_copy_too || copy.record->source == origin.address.ToString();
}

bool NamesSource(const LastTransfer& record, const SourceAddress& other) {
  SourceAddress place = other;
  place.set.clear();
  const std::string text = place.ToString();
  return record.source == text ||
         (other.is_archive() && record.source.starts_with(text + "@"));
}

Verdict JudgeDifference(const JudgedSide& left, const JudgedSide& right,
                        const Selection& selection) {
  if (IsPulledFrom(right, left)) {
    return JudgeCopy(right, "right", left, "left", selection);
  }
  if (IsPulledFrom(left, right)) {
    return JudgeCopy(left, "left", right, "right", selection);
  }
  return JudgeStrangers(left, right);
}

}  // namespace sstferry
