// Input: one frame, as read from a socket.
#include "tests/format/samples.h"
#include "tests/support/annotate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sstferry;
  const rocksdb::Slice input(reinterpret_cast<const char*>(data), size);
  std::string text;
  AnnotateFrame(input, &text).PermitUncheckedError();

  // With a correct digest, the same bytes reach the message codecs.
  FrameHeader header;
  if (DecodeFrameHeader(input, &header).ok()) {
    const std::string payload(input.data() + kFrameHeaderBytes,
                              size - kFrameHeaderBytes);
    if (payload.size() < (1u << 20)) {
      AnnotateFrame(MakeFrame(header.type, 0, payload, header.flags), &text)
          .PermitUncheckedError();
    }
  }
  return 0;
}
