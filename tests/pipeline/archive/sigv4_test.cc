// Signatures equal those that Amazon published for its examples. Each of the
// four rules has a request with a known signature.
#include "pipeline/archive/sigv4.h"

#include "tests/support/catch.h"

namespace sstferry::sigv4_test {
namespace {

// The account, bucket and time of Amazon's examples.
const Credentials kExample{"AKIAIOSFODNN7EXAMPLE",
                           "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "", 0};
constexpr UnixSeconds kMoment = 1'369'353'600;  // 2013-05-24 00:00:00 UTC

HttpRequest Request(const std::string& method, const std::string& path) {
  HttpRequest request;
  request.method = method;
  request.host = "examplebucket.s3.amazonaws.com";
  request.path = path;
  return request;
}

std::string Signature(HttpRequest request, const rocksdb::Slice& payload = "",
                      const Credentials& credentials = kExample) {
  SignRequest(credentials, "us-east-1", Sha256Of(payload), kMoment, &request);
  const std::string& text = request.headers.at("authorization");
  return text.substr(text.rfind('=') + 1);
}

}  // namespace

TEST_CASE("Signatures equal those of Amazon's published examples",
          "[archive]") {
  HttpRequest get = Request("GET", "/test.txt");
  get.headers["range"] = "bytes=0-9";
  CHECK(Signature(get) ==
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");

  HttpRequest put = Request("PUT", "/test%24file.text");
  put.headers["date"] = "Fri, 24 May 2013 00:00:00 GMT";
  put.headers["x-amz-storage-class"] = "REDUCED_REDUNDANCY";
  CHECK(Signature(put, "Welcome to Amazon S3.") ==
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");

  HttpRequest lifecycle = Request("GET", "/");
  lifecycle.query["lifecycle"] = "";
  CHECK(Signature(lifecycle) ==
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");

  HttpRequest list = Request("GET", "/");
  list.query = {{"max-keys", "2"}, {"prefix", "J"}};
  CHECK(Signature(list) ==
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");

  SignRequest(kExample, "us-east-1", Sha256Of(""), kMoment, &get);
  CHECK(get.headers.at("authorization") ==
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/"
        "s3/aws4_request,SignedHeaders=host;range;x-amz-content-sha256;"
        "x-amz-date,Signature="
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST_CASE("Rule 1: each request carries its payload's digest, signed",
          "[archive]") {
  HttpRequest request = Request("PUT", "/a");
  SignRequest(kExample, "us-east-1", Sha256Of("abc"), kMoment, &request);
  CHECK(request.headers.at("x-amz-content-sha256") ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(request.headers.at("authorization").find(";x-amz-content-sha256;") !=
        std::string::npos);
  CHECK(Signature(Request("PUT", "/a"), "abc") !=
        Signature(Request("PUT", "/a"), "abd"));
}

TEST_CASE("Rule 2: a query is sorted and encoded, as it is signed",
          "[archive]") {
  const std::map<std::string, std::string> query = {
      {"uploadId", "a+b/c=="}, {"partNumber", "7"}, {"prefix", "x y~\xc3\xa9"}};
  CHECK(EncodeQuery(query) ==
        "partNumber=7&prefix=x%20y~%C3%A9&uploadId=a%2Bb%2Fc%3D%3D");
  HttpRequest request = Request("GET", "/");
  request.query = query;
  CHECK(CanonicalRequest(request, "-") ==
        "GET\n/\npartNumber=7&prefix=x%20y~%C3%A9&uploadId=a%2Bb%2Fc%3D%3D\n\n"
        "\n-");
}

TEST_CASE("Rule 3: a parameter without a value is written with its equals sign",
          "[archive]") {
  CHECK(EncodeQuery({{"uploads", ""}}) == "uploads=");
  CHECK(EncodeQuery({{"uploads", ""}, {"prefix", ""}}) == "prefix=&uploads=");
}

TEST_CASE("Rule 4: the bytes of a key need no encoding", "[archive]") {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string key = "a" + std::string(1, static_cast<char>(byte)) + "b";
    if (IsStoreKey(key) && byte != '/') {
      CHECK(PercentEncode(key) == key);
    }
  }
  CHECK(PercentEncode("a/b") == "a%2Fb");  // in a query; paths keep slashes
}

TEST_CASE("A session token is signed, and a new one replaces it", "[archive]") {
  Credentials temporary = kExample;
  temporary.session_token = "first";
  HttpRequest request = Request("GET", "/a");
  SignRequest(temporary, "us-east-1", Sha256Of(""), kMoment, &request);
  CHECK(request.headers.at("x-amz-security-token") == "first");
  const std::string first = request.headers.at("authorization");
  CHECK(first.find("x-amz-date;x-amz-security-token,") != std::string::npos);
  temporary.session_token = "second";
  SignRequest(temporary, "us-east-1", Sha256Of(""), kMoment, &request);
  CHECK(request.headers.at("x-amz-security-token") == "second");
  CHECK(request.headers.at("authorization") != first);
  SignRequest(kExample, "us-east-1", Sha256Of(""), kMoment, &request);
  CHECK(request.headers.count("x-amz-security-token") == 0);
  CHECK(SigningDate(kMoment) == "20130524T000000Z");
}

}  // namespace sstferry::sigv4_test
