#include "pipeline/archive/seal.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "format/coding.h"
#include "format/end_state.h"
#include "format/hex.h"
#include "pipeline/base/open_file.h"

namespace sstferry {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

constexpr uint64_t kSealedChunkBytes = kSealChunkBytes + kSealTagBytes;
constexpr size_t kNonceBytes = 12;
constexpr size_t kKeyFileDigits = 2 * sizeof(SealKey::Bytes);

// Aborts the process on a failure. OpenSSL fails here only if it gets no
// memory.
void MustEncrypt(bool worked) {
  if (!worked) {
    std::abort();
  }
}

const unsigned char* In(const Slice& bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* Out(char* bytes) {
  return reinterpret_cast<unsigned char*>(bytes);
}
template <size_t kBytes>
Slice AsSlice(const std::array<uint8_t, kBytes>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void SetNonce(uint64_t number, unsigned char (&nonce)[kNonceBytes]) {
  char bytes[8];
  EncodeFixed64(bytes, number);
  std::memset(nonce, 0, sizeof(nonce));
  std::memcpy(nonce, bytes, sizeof(bytes));
}

bool ParseKey(std::string text, SealKey::Bytes* key) {
  if (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  if (text.size() != kKeyFileDigits) {
    return false;
  }
  for (size_t i = 0; i < key->size(); ++i) {
    const std::optional<uint8_t> byte = HexByte(text[2 * i], text[2 * i + 1]);
    if (!byte.has_value()) {
      return false;
    }
    (*key)[i] = *byte;
  }
  return true;
}

Status BadKeyFile(const std::string& path, const std::string& what) {
  return MakeStatus(EndState::kRefused, "--key-file " + path + ": " + what);
}

// Decrypts the bytes of an object after its head. Starts at the beginning of a
// chunk.
class Unsealer {
 public:
  Unsealer(const SealKey& key, const SealedObject& object,
           uint64_t first_chunk, ObjectSink sink)
      : sealer_(key, object.salt, object.key, object.bytes),
        file_bytes_(object.bytes),
        chunk_(first_chunk),
        sink_(std::move(sink)) {}

  [[nodiscard]] Status Add(Slice bytes) {
    while (!bytes.empty()) {
      const uint64_t at = chunk_ * kSealChunkBytes;
      const size_t whole = static_cast<size_t>(
          std::min(kSealChunkBytes, file_bytes_ - std::min(file_bytes_, at)) +
          kSealTagBytes);
      const size_t count = std::min(bytes.size(), whole - sealed_.size());
      sealed_.append(bytes.data(), count);
      bytes.remove_prefix(count);
      if (sealed_.size() < whole) {
        break;
      }
      const Status unsealed = sealer_.Unseal(chunk_, sealed_, &plain_);
      is_damaged_ = !unsealed.ok();
      RETURN_IF_ERROR(unsealed);
      RETURN_IF_ERROR(sink_(plain_));
      sealed_.clear();
      ++chunk_;
    }
    return Status::OK();
  }
  // Returns true if Add() failed because of a damaged chunk, not because of the
  // sink.
  bool is_damaged() const { return is_damaged_; }

 private:
  ChunkSealer sealer_;
  const uint64_t file_bytes_;
  uint64_t chunk_;
  const ObjectSink sink_;
  std::string sealed_;
  std::string plain_;
  bool is_damaged_ = false;
};

class SealedFile : public SetFile {
 public:
  SealedFile(const SealKey& key, const SealSalt& salt,
             const std::string& object_key, const CloneFile& file,
             uint64_t unit_bytes, std::unique_ptr<SetFile> plain)
      : head_(SealHead(key.id(), salt)),
        sealer_(key, salt, object_key, file.bytes),
        units_(file, unit_bytes),
        plain_(std::move(plain)) {}

  uint64_t size() const override { return SealedBytes(plain_->size()); }
  [[nodiscard]] Status Read(uint64_t offset, size_t n, std::string* scratch,
                            Slice* out) const override {
    RETURN_IF_ERROR(const_cast<SealedFile*>(this)->Fill(offset, n, scratch));
    *out = Slice(*scratch);
    return Status::OK();
  }
  [[nodiscard]] Status Digest(uint64_t offset, uint64_t bytes,
                              FileDigests* digests) override;

 private:
  [[nodiscard]] Status Fill(uint64_t offset, size_t n, std::string* scratch);
  // Reads the chunk with this number, and seals it into chunk_.
  [[nodiscard]] Status SealChunk(uint64_t number);

  const std::string head_;
  ChunkSealer sealer_;
  UnitDigester units_;
  uint64_t digested_ = 0;  // number of chunks that units_ has received
  bool is_checked_ = false;
  const std::unique_ptr<SetFile> plain_;
  // Digests of the plain chunks of the current piece, by chunk number.
  std::map<uint64_t, uint64_t> seen_;
  uint64_t number_ = UINT64_MAX;  // number of chunk_
  std::string chunk_;
  std::string scratch_;
};

Status SealedFile::SealChunk(uint64_t number) {
  if (number == number_) {
    return Status::OK();
  }
  const uint64_t at = number * kSealChunkBytes;
  Slice plain;
  number_ = UINT64_MAX;
  RETURN_IF_ERROR(plain_->Read(
      at,
      static_cast<size_t>(std::min(kSealChunkBytes, plain_->size() - at)),
      &scratch_, &plain));
  const uint64_t digest = Digest64(plain);
  const auto [seen, is_new] = seen_.emplace(number, digest);
  if (!is_new && seen->second != digest) {
    return MakeStatus(EndState::kSourceError,
                      "push: the source read the bytes at " +
                          std::to_string(at) +
                          " of a file twice, and returned different ones; "
                          "check its disk");
  }
  if (number == digested_) {
    units_.Add(plain);
    ++digested_;
  }
  chunk_.clear();
  sealer_.Seal(number, plain, &chunk_);
  number_ = number;
  return Status::OK();
}

Status SealedFile::Fill(uint64_t offset, size_t n, std::string* scratch) {
  scratch->clear();
  scratch->reserve(n);
  while (scratch->size() < n) {
    const uint64_t at = offset + scratch->size();
    Slice from;
    if (at < kSealHeadBytes) {
      from = Slice(head_);
      from.remove_prefix(at);
    } else {
      const uint64_t behind = at - kSealHeadBytes;
      RETURN_IF_ERROR(SealChunk(behind / kSealedChunkBytes));
      from = Slice(chunk_);
      from.remove_prefix(behind % kSealedChunkBytes);
    }
    scratch->append(from.data(), std::min(from.size(), n - scratch->size()));
  }
  return Status::OK();
}

Status SealedFile::Digest(uint64_t offset, uint64_t bytes,
                          FileDigests* digests) {
  if (!is_checked_) {
    FileDigests none;
    RETURN_IF_ERROR(plain_->Digest(0, 0, &none));
    is_checked_ = true;
  }
  const uint64_t first =
      (offset - std::min(offset, kSealHeadBytes)) / kSealedChunkBytes;
  seen_.erase(seen_.begin(), seen_.lower_bound(first));
  constexpr uint64_t kReadBytes = 1u << 20;
  Sha256 piece;
  std::string scratch;
  for (uint64_t at = 0; at < bytes;) {
    const auto count =
        static_cast<size_t>(std::min<uint64_t>(kReadBytes, bytes - at));
    RETURN_IF_ERROR(Fill(offset + at, count, &scratch));
    piece.Update(scratch);
    at += count;
  }
  digests->pieces.push_back(piece.Finish());
  digests->units = units_.units();
  return Status::OK();
}

}  // namespace

// --- the key -----------------------------------------------------------------

SealKey::SealKey(const Bytes& bytes) : bytes_(bytes) {
  const Sha256Digest id = Derive("id", "");
  std::copy_n(id.begin(), id_.size(), id_.begin());
}

Sha256Digest SealKey::Derive(const char* label, const std::string& of) const {
  std::string use = label;
  use += '\0';
  use += of;
  return HmacSha256(AsSlice(bytes_), use);
}

Status SealKey::Read(const std::string& path, std::shared_ptr<SealKey>* key) {
  Descriptor file;
  const Status opened = OpenOwn(path, /*account=*/0, &file);
  if (!opened.ok()) {
    return MakeStatus(EndState::kRefused, "--key-file " + MessageOf(opened));
  }
  struct stat info {};
  if (fstat(file.get(), &info) != 0) {
    return BadKeyFile(path, std::strerror(errno));
  }
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return BadKeyFile(path, "other accounts can read or change it; chmod 600 "
                            "it, and make another key if an account may have "
                            "done so");
  }
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return BadKeyFile(path, "expected a file owned by the account that runs "
                            "this or by root, found another owner");
  }
  char text[kKeyFileDigits + 2];
  const ssize_t count = read(file.get(), text, sizeof(text));
  Bytes bytes;
  const bool is_key =
      count > 0 &&
      ParseKey(std::string(text, static_cast<size_t>(count)), &bytes);
  OPENSSL_cleanse(text, sizeof(text));
  if (!is_key) {
    return BadKeyFile(path, "expected 64 hex digits, as 'openssl rand -hex 32' "
                            "makes them, found something else");
  }
  *key = std::make_shared<SealKey>(bytes);
  return Status::OK();
}

void SealKey::CryptUnits(ArchivedFile* file, bool encrypt) const {
  const Sha256Digest key =
      Derive("unit", AsSlice(file->salt).ToString() + ArchiveKeyText(file->key));
  const std::unique_ptr<EVP_CIPHER_CTX, void (*)(EVP_CIPHER_CTX*)> context(
      EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  MustEncrypt(context != nullptr &&
              EVP_CipherInit_ex(context.get(), EVP_aes_256_ecb(), nullptr,
                                key.data(), nullptr, encrypt ? 1 : 0) == 1 &&
              EVP_CIPHER_CTX_set_padding(context.get(), 0) == 1);
  for (Digest128& unit : file->units) {
    char block[16];
    unsigned char crypted[32];
    int bytes = 0;
    EncodeFixed64(block, unit.low);
    EncodeFixed64(block + 8, unit.high);
    MustEncrypt(EVP_CipherUpdate(context.get(), crypted, &bytes,
                                 In(Slice(block, sizeof(block))),
                                 sizeof(block)) == 1 &&
                bytes == sizeof(block));
    unit.low = DecodeFixed64(reinterpret_cast<const char*>(crypted));
    unit.high = DecodeFixed64(reinterpret_cast<const char*>(crypted) + 8);
  }
}

void SealKey::Seal(ArchiveSet* set) const {
  set->is_sealed = true;
  set->key_id = id_;
  set->seal = Sha256Digest();
  for (ArchivedFile& file : set->files) {
    CryptUnits(&file, /*encrypt=*/true);
  }
  set->seal =
      HmacSha256(AsSlice(Derive("set", "")), EncodeArchiveSetRecord(*set));
}

Status SealKey::Unseal(ArchiveSet* set) const {
  if (!set->is_sealed || set->key_id != id_) {
    return MakeStatus(EndState::kRefused,
                      std::string("expected a set that is sealed with the key "
                                  "of --key-file, found one that is ") +
                          (set->is_sealed ? "sealed with another key"
                                          : "not sealed"));
  }
  const Sha256Digest found = set->seal;
  set->seal = Sha256Digest();
  const Sha256Digest expected =
      HmacSha256(AsSlice(Derive("set", "")), EncodeArchiveSetRecord(*set));
  if (CRYPTO_memcmp(found.data(), expected.data(), expected.size()) != 0) {
    return MakeStatus(EndState::kCorrupt,
                      "the record was changed after it was sealed with the key "
                      "of --key-file");
  }
  set->seal = found;
  for (ArchivedFile& file : set->files) {
    CryptUnits(&file, /*encrypt=*/false);
  }
  return Status::OK();
}

Sha256Digest SealKey::SealOf(LogHead head) const {
  head.seal = Sha256Digest();
  return HmacSha256(AsSlice(Derive("log", "")), EncodeLogRecord(head));
}

void SealKey::Seal(LogHead* head, std::string* payload) const {
  head->is_sealed = true;
  head->key_id = id_;
  head->salt = RandomSealSalt();
  ChunkSealer sealer(*this, head->salt, LogKeyText(head->key),
                     payload->size());
  std::string sealed;
  sealed.reserve(head->stored_bytes());
  for (uint64_t at = 0; at < payload->size(); at += kSealChunkBytes) {
    sealer.Seal(at / kSealChunkBytes,
                Slice(payload->data() + at,
                      static_cast<size_t>(std::min<uint64_t>(
                          kSealChunkBytes, payload->size() - at))),
                &sealed);
  }
  *payload = std::move(sealed);
  head->payload = DigestOf(*payload);
  head->seal = SealOf(*head);
}

Status SealKey::Check(const LogHead& head) const {
  if (!head.is_sealed || head.key_id != id_) {
    return MakeStatus(EndState::kCorrupt,
                      std::string("expected a segment that is sealed with the "
                                  "key of --key-file, found one that is ") +
                          (head.is_sealed ? "sealed with another key"
                                          : "not sealed"));
  }
  const Sha256Digest expected = SealOf(head);
  return CRYPTO_memcmp(head.seal.data(), expected.data(), expected.size()) == 0
             ? Status::OK()
             : MakeStatus(EndState::kCorrupt,
                          "the head was changed after it was sealed with the "
                          "key of --key-file");
}

// --- objects -----------------------------------------------------------------

void ChunkSealer::Free::operator()(evp_cipher_ctx_st* context) const {
  EVP_CIPHER_CTX_free(context);
}

ChunkSealer::ChunkSealer(const SealKey& key, const SealSalt& salt,
                         const std::string& object_key, uint64_t file_bytes)
    : key_([&] {
        std::string of = AsSlice(salt).ToString();
        PutFixed64(&of, file_bytes);
        return key.Derive("file", of + object_key);
      }()),
      context_(EVP_CIPHER_CTX_new()) {
  MustEncrypt(context_ != nullptr);
}

void ChunkSealer::Seal(uint64_t number, const Slice& plain, std::string* out) {
  unsigned char nonce[kNonceBytes];
  SetNonce(number, nonce);
  const size_t begin = out->size();
  out->resize(begin + plain.size() + kSealTagBytes);
  int bytes = 0;
  int rest = 0;
  MustEncrypt(
      EVP_EncryptInit_ex(context_.get(), EVP_aes_256_gcm(), nullptr,
                         key_.data(), nonce) == 1 &&
      EVP_EncryptUpdate(context_.get(), Out(out->data() + begin), &bytes,
                        In(plain), static_cast<int>(plain.size())) == 1 &&
      EVP_EncryptFinal_ex(context_.get(), Out(out->data() + begin + bytes),
                          &rest) == 1 &&
      static_cast<size_t>(bytes + rest) == plain.size() &&
      EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_GCM_GET_TAG, kSealTagBytes,
                          out->data() + begin + plain.size()) == 1);
}

Status ChunkSealer::Unseal(uint64_t number, const Slice& sealed,
                           std::string* plain) {
  unsigned char nonce[kNonceBytes];
  SetNonce(number, nonce);
  const size_t count = sealed.size() - std::min<size_t>(sealed.size(),
                                                        kSealTagBytes);
  plain->resize(count);
  char tag[kSealTagBytes] = {};
  std::memcpy(tag, sealed.data() + count, sealed.size() - count);
  int bytes = 0;
  int rest = 0;
  const bool is_good =
      EVP_DecryptInit_ex(context_.get(), EVP_aes_256_gcm(), nullptr,
                         key_.data(), nonce) == 1 &&
      EVP_DecryptUpdate(context_.get(), Out(plain->data()), &bytes, In(sealed),
                        static_cast<int>(count)) == 1 &&
      EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_GCM_SET_TAG, kSealTagBytes,
                          tag) == 1 &&
      EVP_DecryptFinal_ex(context_.get(), Out(plain->data() + bytes), &rest) ==
          1;
  if (!is_good) {
    plain->clear();
    return MakeStatus(EndState::kCorrupt,
                      "chunk " + std::to_string(number) +
                          ": its bytes differ from those that were sealed");
  }
  return Status::OK();
}

SealSalt RandomSealSalt() {
  SealSalt salt;
  MustEncrypt(RAND_bytes(salt.data(), static_cast<int>(salt.size())) == 1);
  return salt;
}

std::string SealHead(const SealKeyId& id, const SealSalt& salt) {
  return kSealMagic + AsSlice(id).ToString() + AsSlice(salt).ToString();
}

bool ParseSealHead(const Slice& head, SealKeyId* id, SealSalt* salt) {
  constexpr size_t kMagicBytes = sizeof(kSealMagic) - 1;
  if (head.size() != kSealHeadBytes || !head.starts_with(kSealMagic)) {
    return false;
  }
  std::memcpy(id->data(), head.data() + kMagicBytes, id->size());
  std::memcpy(salt->data(), head.data() + kMagicBytes + id->size(),
              salt->size());
  return true;
}

std::unique_ptr<SetFile> SealFileOf(const SealKey& key, const SealSalt& salt,
                                    const std::string& object_key,
                                    const CloneFile& file, uint64_t unit_bytes,
                                    std::unique_ptr<SetFile> plain) {
  return std::make_unique<SealedFile>(key, salt, object_key, file, unit_bytes,
                                      std::move(plain));
}

SealedObject SealedObjectOf(const ArchivedFile& file) {
  return {ArchiveKeyText(file.key), file.salt, file.file.bytes};
}

StoreResult GetSealed(ObjectStore* store, const SealKey& key,
                      const SealedObject& object, uint64_t offset,
                      uint64_t bytes, const ObjectSink& sink) {
  const uint64_t first = offset / kSealChunkBytes;
  const uint64_t chunk_end = (offset + bytes + kSealChunkBytes - 1) /
                             kSealChunkBytes;
  const uint64_t end =
      object.begin + std::min(chunk_end * kSealedChunkBytes,
                              SealedBytes(object.bytes) - kSealHeadBytes);
  uint64_t skip = offset - first * kSealChunkBytes;
  uint64_t left = bytes;
  Unsealer unsealer(key, object, first, [&](const Slice& plain) {
    Slice piece = plain;
    const auto skipped =
        static_cast<size_t>(std::min<uint64_t>(skip, piece.size()));
    skip -= skipped;
    piece.remove_prefix(skipped);
    piece = Slice(piece.data(), static_cast<size_t>(
                                    std::min<uint64_t>(piece.size(), left)));
    left -= piece.size();
    return piece.empty() ? Status::OK() : sink(piece);
  });
  GetRequest request;
  request.key = object.key;
  request.offset = object.begin + first * kSealedChunkBytes;
  request.bytes = end - std::min(end, request.offset);
  if (*request.bytes == 0) {
    return {};
  }
  const StoreResult got = store->Get(
      request, [&](const Slice& sealed) { return unsealer.Add(sealed); });
  return got.code == StoreCode::kCaller && unsealer.is_damaged()
             ? StoreError(StoreCode::kDamaged, store->Describe(request.key) +
                                                   ": " + MessageOf(got.status))
             : got;
}

}  // namespace sstferry
