// Input: a complete lease file, which is also used as the payload of one.
#include <cstdlib>

#include "format/coding.h"
#include "format/digest.h"
#include "format/lease.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sstferry;
  const rocksdb::Slice file(reinterpret_cast<const char*>(data), size);
  Lease lease;
  DecodeLease(file, &lease).PermitUncheckedError();

  std::string sealed(kLeaseMagic, 8);
  PutFixed32(&sealed, static_cast<uint32_t>(size));
  PutFixed32(&sealed, 0);
  PutFixed64(&sealed, Digest64(file, Digest64(sealed)));
  sealed.append(file.data(), file.size());
  if (DecodeLease(sealed, &lease).ok()) {
    std::string again;
    if (!EncodeLease(lease, &again).ok() || again != sealed) {
      abort();  // the decoded lease encodes to other bytes
    }
  }
  return 0;
}
