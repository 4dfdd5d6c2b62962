#include "format/plan.h"

#include <algorithm>
#include <utility>

#include "format/end_state.h"
#include "format/for_each_batch.h"
#include "format/limits.h"

namespace sstferry {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

// Memory that an option or a part needs in addition to its bytes in a message.
constexpr uint64_t kItemBytes = 128;
// Maximum size of a part, so that sums of parts do not overflow.
constexpr uint64_t kMaxPartBytes = 1ull << 44;

Status Malformed(const std::string& what) {
  return MakeStatus(EndState::kCorrupt, "plan: " + what);
}

template <typename Message>
std::string Encoded(const Message& message) {
  std::string payload;
  Encode(message, &payload);
  return payload;
}

// Returns the memory that the options of a family need in addition to their
// bytes in the message.
uint64_t OptionBytes(const Family& family) {
  return kItemBytes * (family.description.options.size() +
                       family.description.table_options.size());
}

CloneSet Announced(const FileSet& set) {
  return {set.unit_bytes, static_cast<uint32_t>(set.files.size()), set.content};
}

// Calls each() with messages that together contain all items of the list.
template <typename Batch, typename Item>
Status EncodeBatches(FrameType type, const std::vector<Item>& items,
                     const PlanSink& each) {
  return ForEachBatch(items, [&](std::vector<Item> batch) {
    return each(type, Encoded(Batch{std::move(batch)}));
  });
}

}  // namespace

uint64_t Plan::bytes() const {
  uint64_t sum = 0;
  for (const Part& part : parts) {
    sum += part.bytes;
  }
  return sum;
}

Digest128 Plan::Digest() const {
  std::string text;
  for (Family family : families) {
    family.estimated_entries = 0;
    family.estimated_bytes = 0;
    family.source_files = 0;
    Encode(family, &text);
  }
  for (Part part : parts) {
    part.bytes = part.is_unit() ? part.bytes : 0;
    Encode(Parts{{std::move(part)}}, &text);
  }
  if (clone.has_value()) {
    Encode(Announced(*clone), &text);
    Encode(CloneFiles{clone->files}, &text);
  }
  return DigestOf(text);
}

Status EncodePlan(const Opened& opened, const Plan& plan,
                  const PlanSink& each) {
  RETURN_IF_ERROR(each(FrameType::kOpened, Encoded(opened)));
  for (const Family& family : plan.families) {
    RETURN_IF_ERROR(each(FrameType::kFamily, Encoded(family)));
  }
  if (plan.clone.has_value()) {
    RETURN_IF_ERROR(
        each(FrameType::kCloneSet, Encoded(Announced(*plan.clone))));
    RETURN_IF_ERROR(EncodeBatches<CloneFiles>(FrameType::kCloneFiles,
                                              plan.clone->files, each));
  }
  RETURN_IF_ERROR(EncodeBatches<Parts>(FrameType::kParts, plan.parts, each));
  RETURN_IF_ERROR(
      EncodeBatches<PlanItems>(FrameType::kPlanItems, plan.items, each));
  PlanEnd end;
  end.part_count = static_cast<uint32_t>(plan.parts.size());
  end.estimated_bytes = plan.bytes();
  return each(FrameType::kPlanEnd, Encoded(end));
}

uint64_t PlanBytes(const Plan& plan) {
  uint64_t bytes = kMaxPayloadBytes;  // for `opened`
  EncodePlan(Opened(), plan,
             [&bytes](FrameType, const std::string& payload) {
               bytes += payload.size();
               return Status::OK();
             })
      .PermitUncheckedError();
  for (const Family& family : plan.families) {
    bytes += OptionBytes(family);
  }
  bytes += kItemBytes * plan.parts.size();
  return bytes + (plan.clone.has_value()
                      ? sizeof(CloneFile) * plan.clone->files.size()
                      : 0);
}

Status CheckPlanSize(const Plan& plan, uint64_t max_bytes) {
  const uint64_t bytes = PlanBytes(plan);
  return bytes <= max_bytes
             ? Status::OK()
             : MakeStatus(EndState::kRefused,
                          "plan: expected at most " +
                              std::to_string(max_bytes) +
                              " bytes of families and parts, found " +
                              std::to_string(bytes) +
                              (plan.clone.has_value()
                                   ? "; --method ingest pulls this database as "
                                     "chunks"
                                   : "; pull it as files with --method clone, "
                                     "or fewer column families with --cf"));
}

Status PlanDecoder::Add(FrameType type, const Slice& payload) {
  bytes_ += payload.size();
  if (bytes_ > kMaxPlanBytes) {
    return Malformed("expected at most " + std::to_string(kMaxPlanBytes) +
                     " bytes, found more");
  }
  // Decodes a batch and adds it.
  const auto add = [&](auto batch, auto adder) {
    const Status status = Decode(payload, &batch);
    return status.ok() ? (this->*adder)(std::move(batch)) : status;
  };
  if (is_complete_ || (type == FrameType::kOpened) == is_opened_) {
    return Malformed(std::string(FrameTypeName(type)) +
                     " arrived out of order");
  }
  switch (type) {
    case FrameType::kOpened:
      return TakeOpened(payload);
    case FrameType::kFamily:
      return TakeFamily(payload);
    case FrameType::kCloneSet:
      return TakeCloneSet(payload);
    case FrameType::kCloneFiles:
      return add(CloneFiles(), &PlanDecoder::AddFiles);
    case FrameType::kParts:
      return add(Parts(), &PlanDecoder::AddParts);
    case FrameType::kPlanItems:
      return add(PlanItems(), &PlanDecoder::AddItems);
    case FrameType::kPlanEnd:
      return TakeEnd(payload);
    default:
      return Status::NotFound("not a message of a plan");
  }
}

Status PlanDecoder::TakeOpened(const Slice& payload) {
  is_opened_ = true;
  const Status status = Decode(payload, &plan_.opened);
  return status.ok() ? CheckOtherFiles(plan_.opened.other_files) : status;
}

Status PlanDecoder::TakeFamily(const Slice& payload) {
  Family family;
  const Status status = Decode(payload, &family);
  if (status.ok() && (family.index != plan_.families.size() ||
                      family.index >= plan_.opened.family_count)) {
    return Malformed("expected column family " +
                     std::to_string(plan_.families.size()) + " of " +
                     std::to_string(plan_.opened.family_count) + ", found " +
                     std::to_string(family.index));
  }
  bytes_ += OptionBytes(family);
  plan_.families.push_back(std::move(family));
  return status;
}

Status PlanDecoder::TakeCloneSet(const Slice& payload) {
  if (plan_.clone.has_value()) {
    return Malformed("expected the files of one clone, found a second one");
  }
  CloneSet set;
  RETURN_IF_ERROR(Decode(payload, &set));
  file_count_ = set.file_count;
  plan_.clone = FileSet{set.unit_bytes, set.content, {}};
  return Status::OK();
}

Status PlanDecoder::AddFiles(const CloneFiles& batch) {
  if (!plan_.clone.has_value() ||
      batch.files.size() > file_count_ - plan_.clone->files.size()) {
    return Malformed("expected no more files than the source announced, "
                     "found more");
  }
  plan_.clone->files.insert(plan_.clone->files.end(), batch.files.begin(),
                            batch.files.end());
  bytes_ += sizeof(CloneFile) * batch.files.size();
  return Status::OK();
}

Status PlanDecoder::AddParts(Parts batch) {
  for (Part& part : batch.parts) {
    if (part.id != plan_.parts.size() || part.id >= kMaxParts ||
        part.family >= plan_.families.size()) {
      return Malformed("expected part " + std::to_string(plan_.parts.size()) +
                       " of a known column family, found part " +
                       std::to_string(part.id) + " of column family " +
                       std::to_string(part.family));
    }
    if (part.is_unit() != plan_.clone.has_value() ||
        (!part.is_unit() && (part.file != 0 || part.offset != 0))) {
      return Malformed("part " + std::to_string(part.id) +
                       (plan_.clone.has_value()
                            ? ": expected a unit of a file, found keys"
                            : ": expected keys, found bytes of a file"));
    }
    bytes_ += kItemBytes;
    part.bytes = std::min(part.bytes, kMaxPartBytes);
    plan_.parts.push_back(std::move(part));
  }
  return Status::OK();
}

Status PlanDecoder::AddItems(PlanItems batch) {
  for (PlanItem& item : batch.items) {
    if (item.family >= plan_.families.size()) {
      return Malformed("an item names an unknown column family");
    }
    if (plan_.items.size() >= kMaxParts) {
      return Malformed("expected at most " + std::to_string(kMaxParts) +
                       " items, found more");
    }
    plan_.items.push_back(std::move(item));
  }
  return Status::OK();
}

// Checks that the plan's units are exactly those into which both sides split
// the files in the list.
Status PlanDecoder::CheckUnits() const {
  const FileSet& clone = *plan_.clone;
  if (clone.files.size() != file_count_) {
    return Malformed("expected " + std::to_string(file_count_) +
                     " files, found " + std::to_string(clone.files.size()));
  }
  std::vector<Part> units;
  Status status = CheckCloneFiles(clone.files);
  if (status.ok()) {
    status = CutIntoUnits(clone.files, clone.unit_bytes, &units);
  }
  if (!status.ok()) {
    return Malformed(MessageOf(status));
  }
  return units == plan_.parts
             ? Status::OK()
             : Malformed("expected one part for each of " +
                         std::to_string(units.size()) +
                         " units of the files, found other parts");
}

Status PlanDecoder::TakeEnd(const Slice& payload) {
  PlanEnd end;
  const Status status = Decode(payload, &end);
  if (status.ok() && (end.part_count != plan_.parts.size() ||
                      plan_.families.size() != plan_.opened.family_count)) {
    return Malformed("expected " + std::to_string(end.part_count) +
                     " parts, found " + std::to_string(plan_.parts.size()));
  }
  if (status.ok() && plan_.clone.has_value()) {
    RETURN_IF_ERROR(CheckUnits());
  }
  is_complete_ = status.ok();
  return status;
}

}  // namespace sstferry
