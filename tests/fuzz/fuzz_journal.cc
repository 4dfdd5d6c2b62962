// Input: a complete journal.
#include "format/journal.h"
#include "pipeline/pull/journal_state.h"
#include "tests/support/annotate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sstferry;
  const rocksdb::Slice journal(reinterpret_cast<const char*>(data), size);
  std::string text;
  AnnotateJournal(journal, &text).PermitUncheckedError();
  JournalState state;
  ParseJournalState(journal, &state).PermitUncheckedError();

  // Uses the same bytes as the payload of a valid record.
  if (size > 1 && size <= kMaxJournalPayloadBytes) {
    std::string sealed(kJournalMagic, kJournalMagicBytes);
    AppendJournalRecord(static_cast<JournalRecordType>(
                            1 + data[0] % kMaxJournalRecordType),
                        rocksdb::Slice(journal.data() + 1, size - 1),
                        sealed.size(), &sealed);
    AnnotateJournal(sealed, &text).PermitUncheckedError();
  }
  return 0;
}
